// Ranks that are threads of one process: everything above the backends can be tested in milliseconds.
//
// The ranks of a group share a `ThreadHub`. The last rank to arrive carries out the operation for all, directly between
// their buffers; so the only operations in flight are those that still wait for a rank.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "comm/host_backend.h"
#include "comm/ordered_reduce.h"
#include "tessera/world.h"

namespace tessera {

class ThreadHub {
 public:
  explicit ThreadHub(ReduceOrder order) : order_(std::move(order)) {}

  void submit(int rank, HostOperation operation, c10::intrusive_ptr<HostWork> work);
  // Every operation that waits, and every later one, ends with this message.
  void abort(const std::string& message);

 private:
  struct Seat {
    HostOperation operation;
    c10::intrusive_ptr<HostWork> work;
  };
  using Table = std::vector<std::optional<Seat>>;  // one seat per rank; of a message: the sender's, the receiver's
  using Route = std::tuple<int, int, int>;         // of a message: source, destination, tag

  void run(Table& table) const;

  const ReduceOrder order_;
  std::mutex mutex_;
  std::map<std::pair<Route, std::uint64_t>, Table> tables_;               // those that wait for a rank
  std::map<std::pair<Route, std::size_t>, std::uint64_t> num_submitted_;  // by each seat of a route
  std::string abort_message_;
};

class ThreadBackend : public HostBackend {
 public:
  ThreadBackend(int rank, int size, std::shared_ptr<ThreadHub> hub) : HostBackend(rank, size), hub_(std::move(hub)) {}
  const std::string getBackendName() const override { return "threads"; }

 protected:
  void submit(HostOperation operation, c10::intrusive_ptr<HostWork> work) override {
    hub_->submit(rank_, std::move(operation), std::move(work));
  }

 private:
  std::shared_ptr<ThreadHub> hub_;
};

using MakeThreadBackend =
    std::function<c10::intrusive_ptr<ThreadBackend>(int rank, int size, std::shared_ptr<ThreadHub>)>;
// run_thread_ranks() of world.h with the caller's own backends: a test can make one slow.
void run_thread_ranks(int num_ranks, const WorldOptions& options, const MakeThreadBackend& make,
                      const std::function<void(World&)>& body);

}  // namespace tessera
