// One thread that does work on the host beside the caller: offloaded updates, in the order in which they were given.
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
  ~HostWorker();  // finishes what it was given
  HostWorker(const HostWorker&) = delete;
  HostWorker& operator=(const HostWorker&) = delete;

  // The future is there when `work` has returned, and throws what it threw. From one thread.
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
