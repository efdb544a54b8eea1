#include "comm/thread_world.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <numeric>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "comm/world_impl.h"
#include "core/error.h"

namespace tessera {
namespace {

std::exception_ptr collective_error(const std::string& message) {
  return std::make_exception_ptr(Error(message, ExitStatus::kCollective));
}

std::int64_t offset_of(const std::vector<std::int64_t>& splits, std::size_t index) {
  return std::accumulate(splits.begin(), splits.begin() + static_cast<std::ptrdiff_t>(index), std::int64_t{0});
}

using Operations = std::vector<HostOperation*>;

// The whole reduction, in its own memory, since every input may be some rank's output.
std::vector<std::byte> reduce_all(const Operations& ops, const ReduceOrder& order) {
  const HostOperation& first = *ops.front();
  std::vector<std::byte> result(static_cast<std::size_t>(first.input_numel * first.item_bytes));
  std::vector<const void*> sources;
  for (const HostOperation* op : ops) sources.push_back(op->input);
  ordered_reduce(first.type, first.reduce_op, order, sources, result.data(), first.input_numel);
  return result;
}

void all_to_all(const Operations& ops) {
  std::vector<std::vector<std::byte>> inputs;  // copies, since input and output may be the same memory
  for (const HostOperation* op : ops) inputs.emplace_back(op->input, op->input + op->input_numel * op->item_bytes);
  for (std::size_t to = 0; to < ops.size(); ++to) {
    for (std::size_t from = 0; from < ops.size(); ++from) {
      const std::int64_t numel = ops[from]->input_splits[to];
      if (numel != ops[to]->output_splits[from]) {
        throw Error(fmt::format("all_to_all: rank {} sends {} elements to rank {}, which expects {}", from, numel, to,
                                ops[to]->output_splits[from]),
                    ExitStatus::kCollective);
      }
      const std::int64_t item = ops[to]->item_bytes;
      copy_bytes(ops[to]->output + offset_of(ops[to]->output_splits, from) * item,
                 inputs[from].data() + offset_of(ops[from]->input_splits, to) * item, numel * item);
    }
  }
}

void carry_out(const Operations& ops, const ReduceOrder& order) {
  const HostOperation& first = *ops.front();
  const std::int64_t item = first.item_bytes;
  switch (first.kind) {
    case OpKind::kAllReduce:
    case OpKind::kReduce: {
      const std::vector<std::byte> sum = reduce_all(ops, order);
      for (std::size_t r = 0; r < ops.size(); ++r) {
        if (first.kind == OpKind::kReduce && static_cast<int>(r) != first.peer) continue;
        copy_bytes(ops[r]->output, sum.data(), first.output_numel * item);
      }
      break;
    }
    case OpKind::kReduceScatter: {
      const std::vector<std::byte> sum = reduce_all(ops, order);
      const std::int64_t part = first.output_numel * item;
      for (std::size_t r = 0; r < ops.size(); ++r) {
        copy_bytes(ops[r]->output, sum.data() + static_cast<std::int64_t>(r) * part, part);
      }
      break;
    }
    case OpKind::kAllGather: {
      const std::int64_t part = first.input_numel * item;
      for (HostOperation* op : ops) {
        for (std::size_t r = 0; r < ops.size(); ++r) {
          copy_bytes(op->output + static_cast<std::int64_t>(r) * part, ops[r]->input, part);
        }
      }
      break;
    }
    case OpKind::kBroadcast:
      for (HostOperation* op : ops) {
        copy_bytes(op->output, ops[static_cast<std::size_t>(first.peer)]->input, first.input_numel * item);
      }
      break;
    case OpKind::kAllToAll:
      all_to_all(ops);
      break;
    default:
      break;  // a barrier moves nothing; send and recv do not come here
  }
}

// What the threads share: one hub per group, made by the first member that asks for it.
class ThreadHubs {
 public:
  std::shared_ptr<ThreadHub> of(const std::vector<int>& ranks, const std::vector<int>& nodes) {
    std::lock_guard lock(mutex_);
    auto& hub = hubs_[ranks];
    if (!hub) hub = std::make_shared<ThreadHub>(ReduceOrder::by_node(nodes));
    if (!abort_message_.empty()) hub->abort(abort_message_);
    return hub;
  }

  void abort(const std::string& message) {
    std::lock_guard lock(mutex_);
    abort_message_ = message;
    for (auto& [ranks, hub] : hubs_) hub->abort(message);
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<int>, std::shared_ptr<ThreadHub>> hubs_;
  std::string abort_message_;
};

std::unique_ptr<World> make_world(int rank, int size, const WorldOptions& options,
                                  const std::shared_ptr<ThreadHubs>& hubs, const MakeThreadBackend& make,
                                  const c10::intrusive_ptr<c10d::Store>& store,
                                  const std::shared_ptr<ThreadFailureReport>& report) {
  auto impl = std::make_unique<World::Impl>();
  std::vector<Peer> roster;
  for (int r = 0; r < size; ++r) roster.push_back({.rank = r, .world_size = size, .host = host_name()});
  impl->rank = rank;
  impl->size = size;
  impl->layout = NodeLayout::of(roster, options.ranks_per_node);
  impl->hosts.assign(static_cast<std::size_t>(size), host_name());
  impl->backend_name = "threads";
  impl->store = store;
  impl->make_backend = [self = impl.get(), hubs, make](const std::vector<int>& ranks, const std::string&) {
    return make(self->place_in(ranks), static_cast<int>(ranks.size()), hubs->of(ranks, self->nodes_of(ranks)));
  };
  WatchdogOptions watch;
  watch.rank = rank;
  watch.comm_timeout = options.comm_timeout;
  watch.end = [hubs](const Ending& ending) { hubs->abort(ending.message); };
  impl->watchdog =
      std::make_unique<Watchdog>(std::make_shared<ThreadWatchLine>(report, rank), impl->recorder, std::move(watch));
  return std::make_unique<World>(std::move(impl));
}

std::shared_ptr<ThreadFailureReport> make_failure_report(int size) {
  return std::make_shared<ThreadFailureReport>(std::vector<std::string>(static_cast<std::size_t>(size), host_name()));
}

c10::intrusive_ptr<ThreadBackend> plain_backend(int rank, int size, std::shared_ptr<ThreadHub> hub) {
  return c10::make_intrusive<ThreadBackend>(rank, size, std::move(hub));
}

}  // namespace

void ThreadHub::run(Table& table) const {
  std::exception_ptr error;
  try {
    Operations ops;
    for (auto& seat : table) {
      ops.push_back(&seat->operation);
      if (seat->operation.ready) seat->operation.ready->synchronize();
      // In an all-to-all, totals may differ between ranks.
      if (ops.front()->kind == OpKind::kAllToAll && seat->operation.kind == OpKind::kAllToAll) continue;
      if (seat->operation.signature() != ops.front()->signature()) {
        throw Error(fmt::format("the ranks disagree: rank 0 calls {}, rank {} calls {}", ops.front()->signature(),
                                ops.size() - 1, seat->operation.signature()),
                    ExitStatus::kCollective);
      }
    }
    carry_out(ops, order_);
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& seat : table) seat->work->end(error);
}

void ThreadHub::submit_collective(int rank, HostOperation operation, c10::intrusive_ptr<HostWork> work) {
  Table complete;
  {
    std::lock_guard lock(mutex_);
    if (abort_message_.empty()) {
      const std::uint64_t sequence = ++sequence_of_rank_[rank];
      Table& table = tables_[sequence];
      table.resize(order_.members.size());
      table[static_cast<std::size_t>(rank)].emplace(Seat{std::move(operation), work});
      for (const auto& seat : table) {
        if (!seat) return;
      }
      complete = std::move(table);
      tables_.erase(sequence);
    }
  }
  if (complete.empty()) {
    work->end(collective_error(abort_message_));
  } else {
    run(complete);
  }
}

void ThreadHub::submit_point_to_point(int rank, HostOperation operation, c10::intrusive_ptr<HostWork> work) {
  const bool is_send = operation.kind == OpKind::kSend;
  const Route route = is_send ? Route{rank, operation.peer, operation.tag} : Route{operation.peer, rank, operation.tag};
  Seat own{std::move(operation), std::move(work)};
  std::optional<Seat> other;
  {
    std::lock_guard lock(mutex_);
    if (abort_message_.empty()) {
      auto& waiting = (is_send ? receives_ : sends_)[route];
      if (waiting.empty()) {
        (is_send ? sends_ : receives_)[route].push_back(std::move(own));
        return;
      }
      other = std::move(waiting.front());
      waiting.erase(waiting.begin());
    }
  }
  if (!other) return own.work->end(collective_error(abort_message_));
  const Seat& from = is_send ? own : *other;
  const Seat& to = is_send ? *other : own;
  std::exception_ptr error;
  const std::int64_t bytes = from.operation.input_numel * from.operation.item_bytes;
  if (bytes == to.operation.output_numel * to.operation.item_bytes) {
    if (from.operation.ready) from.operation.ready->synchronize();
    copy_bytes(to.operation.output, from.operation.input, bytes);
  } else {
    error =
        collective_error(fmt::format("rank {} sends {} bytes to rank {}, which expects {}", std::get<0>(route), bytes,
                                     std::get<1>(route), to.operation.output_numel * to.operation.item_bytes));
  }
  own.work->end(error);
  other->work->end(error);
}

void ThreadHub::abort(const std::string& message) {
  std::vector<Seat> waiting;
  {
    std::lock_guard lock(mutex_);
    if (!abort_message_.empty()) return;
    abort_message_ = message;
    for (auto& [sequence, table] : tables_) {
      for (auto& seat : table) {
        if (seat) waiting.push_back(std::move(*seat));
      }
    }
    for (auto* routes : {&sends_, &receives_}) {
      for (auto& [route, seats] : *routes) {
        for (Seat& seat : seats) waiting.push_back(std::move(seat));
      }
      routes->clear();
    }
    tables_.clear();
  }
  for (Seat& seat : waiting) seat.work->end(collective_error(message));
}

void ThreadBackend::submit(HostOperation operation, c10::intrusive_ptr<HostWork> work) {
  if (operation.kind == OpKind::kSend || operation.kind == OpKind::kRecv) {
    hub_->submit_point_to_point(rank_, std::move(operation), std::move(work));
  } else {
    hub_->submit_collective(rank_, std::move(operation), std::move(work));
  }
}

// A world whose ranks are threads of this process.

void run_thread_ranks(int num_ranks, const WorldOptions& options, const std::function<void(World&)>& body) {
  run_thread_ranks(num_ranks, options, plain_backend, body);
}

void run_thread_ranks(int num_ranks, const WorldOptions& options, const MakeThreadBackend& make,
                      const std::function<void(World&)>& body) {
  auto hubs = std::make_shared<ThreadHubs>();
  const c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  const auto report = make_failure_report(num_ranks);
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<World> world;
      try {
        world = make_world(rank, num_ranks, options, hubs, make, store, report);
        body(*world);
        world->all().barrier("end of the thread world")->wait();
      } catch (const std::exception& error) {
        {
          std::lock_guard lock(mutex);
          if (!first_error) first_error = std::current_exception();
        }
        hubs->abort(fmt::format("rank {} failed: {}", rank, error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

std::unique_ptr<World> make_single_world(const WorldOptions& options) {
  return make_world(0, 1, options, std::make_shared<ThreadHubs>(), plain_backend,
                    c10::make_intrusive<c10d::HashStore>(), make_failure_report(1));
}

}  // namespace tessera
