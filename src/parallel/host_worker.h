// One background thread for work on the host: runs offloaded updates in the order in which they are given.
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

  // The future is ready when `work` has returned, and rethrows its exception. Call it from one thread.
  std::shared_future<void> begin(std::function<void()> work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera
