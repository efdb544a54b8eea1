// One background thread for work on the host: runs offloaded updates.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace tessera {

class HostWorker {
 public:
  HostWorker();
  ~HostWorker();  // finishes all pending work
  HostWorker(const HostWorker&) = delete;
  HostWorker& operator=(const HostWorker&) = delete;

  // Work runs in the order in which it is given; but as long as the first waits for its input (`is_ready`, called from
  // the background, tells), the last that is ready goes ahead of it. The future is ready when `work` has returned, and
  // rethrows its exception. Call it from one thread.
  std::shared_future<void> begin(std::function<void()> work, std::function<bool()> is_ready);

 private:
  struct Task {
    std::packaged_task<void()> work;
    std::function<bool()> is_ready;
  };

  void loop();
  std::deque<Task>::iterator next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera
