// The watchdogs' line for ranks that are threads of one process: they share one inquest.
#pragma once

#include <memory>
#include <mutex>

#include "comm/watch_line.h"

namespace tessera {

class ThreadInquest {
 public:
  explicit ThreadInquest(std::vector<std::string> hosts)
      : inquest_({.holder = "this process", .hosts = std::move(hosts)}) {}

 private:
  friend class ThreadWatchLine;
  std::mutex mutex_;
  Inquest inquest_;
  std::optional<Finding> finding_;
};

class ThreadWatchLine : public WatchLine {
 public:
  ThreadWatchLine(std::shared_ptr<ThreadInquest> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
  ~ThreadWatchLine() override {
    const std::lock_guard lock(shared_->mutex_);
    shared_->inquest_.note_leave(rank_);
  }

  void raise(const Alarm& alarm) override {
    const std::lock_guard lock(shared_->mutex_);
    shared_->inquest_.hear_alarm(alarm);
  }
  void publish(const std::string& flight) override {
    const std::lock_guard lock(shared_->mutex_);
    shared_->inquest_.hear_flight(rank_, flight);
  }
  News news() override {
    const std::lock_guard lock(shared_->mutex_);
    if (!shared_->finding_) shared_->finding_ = shared_->inquest_.conclude(Clock::now());
    return {.is_inquiry = shared_->inquest_.is_open(), .finding = shared_->finding_, .lost = {}};
  }
  std::string holder() const override { return "this process"; }

 private:
  std::shared_ptr<ThreadInquest> shared_;
  int rank_;
};

}  // namespace tessera
