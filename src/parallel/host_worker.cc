#include "parallel/host_worker.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera {

HostWorker::HostWorker() : thread_([this] { loop(); }) {}

HostWorker::~HostWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::shared_future<void> HostWorker::begin(std::function<void()> work, std::function<bool()> is_ready) {
  std::packaged_task<void()> task(std::move(work));
  std::shared_future<void> done = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(task), std::move(is_ready)});
  }
  changed_.notify_one();
  return done;
}

std::deque<HostWorker::Task>::iterator HostWorker::next() {
  const auto is_ready = [](const Task& task) {
    try {
      return task.is_ready();
    } catch (...) {
      return true;  // the work will meet the same error and report it
    }
  };
  if (is_ready(waiting_.front())) return waiting_.begin();
  const auto last = std::find_if(waiting_.rbegin(), waiting_.rend(), is_ready);
  return last == waiting_.rend() ? waiting_.begin() : std::prev(last.base());
}

void HostWorker::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto place = next();
    Task task = std::move(*place);
    waiting_.erase(place);
    lock.unlock();
    task.work();
    lock.lock();
  }
}

}  // namespace tessera
