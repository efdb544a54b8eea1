// Ranks that are threads of one process: everything above the backends can be tested in milliseconds.
//
// The ranks of a group share a `ThreadHub`. The last rank to arrive carries out the collective for all, directly
// between their buffers; so the only operations in flight are those that still wait for a rank.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/host_backend.h"
#include "comm/meeting/failure_report.h"
#include "comm/ordered_reduce.h"
#include "tessera/world.h"

namespace tessera {

class ThreadHub {
 public:
  explicit ThreadHub(ReduceOrder order) : order_(std::move(order)) {}

  void submit_collective(int rank, HostOperation operation, c10::intrusive_ptr<HostWork> work);
  void submit_point_to_point(int rank, HostOperation operation, c10::intrusive_ptr<HostWork> work);
  // Every operation that waits, and every later one, ends with this message.
  void abort(const std::string& message);

 private:
  struct Seat {
    HostOperation operation;
    c10::intrusive_ptr<HostWork> work;
  };
  using Table = std::vector<std::optional<Seat>>;  // one seat per rank
  using Route = std::tuple<int, int, int>;         // source, destination, tag

  void run(Table& table) const;

  const ReduceOrder order_;
  std::mutex mutex_;
  std::map<std::uint64_t, Table> tables_;  // collectives that wait for a rank, by sequence number
  std::map<int, std::uint64_t> sequence_of_rank_;
  std::map<Route, std::vector<Seat>> sends_, receives_;  // whichever came first waits here
  std::string abort_message_;
};

class ThreadBackend : public HostBackend {
 public:
  ThreadBackend(int rank, int size, std::shared_ptr<ThreadHub> hub) : HostBackend(rank, size), hub_(std::move(hub)) {}
  const std::string getBackendName() const override { return "threads"; }

 protected:
  void submit(HostOperation operation, c10::intrusive_ptr<HostWork> work) override;

 private:
  std::shared_ptr<ThreadHub> hub_;
};

using MakeThreadBackend =
    std::function<c10::intrusive_ptr<ThreadBackend>(int rank, int size, std::shared_ptr<ThreadHub>)>;
// run_thread_ranks() of world.h with the caller's own backends: a test can make one slow.
void run_thread_ranks(int num_ranks, const WorldOptions& options, const MakeThreadBackend& make,
                      const std::function<void(World&)>& body);

// The watchdogs' line for ranks that are threads of one process: they share one failure report.
class ThreadFailureReport {
 public:
  explicit ThreadFailureReport(std::vector<std::string> hosts)
      : report_({.holder = "this process", .hosts = std::move(hosts)}) {}

 private:
  friend class ThreadWatchLine;
  std::mutex mutex_;
  FailureReport report_;
  std::optional<Finding> finding_;
};

class ThreadWatchLine : public WatchLine {
 public:
  ThreadWatchLine(std::shared_ptr<ThreadFailureReport> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
  ~ThreadWatchLine() override {
    const std::lock_guard lock(shared_->mutex_);
    shared_->report_.note_leave(rank_);
  }

  void raise(const Alarm& alarm) override {
    const std::lock_guard lock(shared_->mutex_);
    shared_->report_.hear_alarm(alarm);
  }
  void publish(const std::string& flight) override {
    const std::lock_guard lock(shared_->mutex_);
    shared_->report_.hear_flight(rank_, flight);
  }
  News news() override {
    const std::lock_guard lock(shared_->mutex_);
    if (!shared_->finding_) shared_->finding_ = shared_->report_.conclude(Clock::now());
    return {.is_inquiry = shared_->report_.is_open(), .finding = shared_->finding_, .lost = {}};
  }
  std::string holder() const override { return "this process"; }

 private:
  std::shared_ptr<ThreadFailureReport> shared_;
  int rank_;
};

}  // namespace tessera
