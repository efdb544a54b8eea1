// A collective in progress, written as a coroutine: it runs until it must wait for messages, and is resumed when they
// have arrived. So the collectives of several groups advance side by side on one thread, and each reads top-down like
// blocking code.
//
//   MpiTask exchange(MpiFlow& flow, ...) {
//     MpiBatch batch = flow.batch();
//     batch.receive(...);
//     batch.send(...);
//     co_await flow.all(batch);
//   }
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace tessera {

class MpiTask {
 public:
  struct promise_type {
    std::coroutine_handle<> awaiting = std::noop_coroutine();  // the task that waits for this one, if any
    std::exception_ptr error;

    MpiTask get_return_object() { return MpiTask(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct ResumeAwaiting {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
          return ended.promise().awaiting;
        }
        void await_resume() noexcept {}
      };
      return ResumeAwaiting{};
    }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit MpiTask(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  MpiTask(MpiTask&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  MpiTask& operator=(MpiTask&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~MpiTask() {
    if (handle_) handle_.destroy();
  }

  // For the progress thread: starts the task.
  void start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  std::exception_ptr error() const { return handle_.promise().error; }

  // For another task: co_await this one as a step.
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.promise().awaiting = awaiting;
    return handle_;
  }
  void await_resume() const {
    if (error()) std::rethrow_exception(error());
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace tessera
