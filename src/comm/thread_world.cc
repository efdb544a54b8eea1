#include "comm/thread_world.h"

#include <fmt/format.h>

#include <algorithm>
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
    case OpKind::kSend: {
      const HostOperation& to = *ops.back();
      const std::int64_t bytes = first.input_numel * item, expected = to.output_numel * to.item_bytes;
      if (bytes != expected) {
        throw Error(
            fmt::format("rank {} sends {} bytes to rank {}, which expects {}", to.peer, bytes, first.peer, expected),
            ExitStatus::kCollective);
      }
      copy_bytes(to.output, first.input, bytes);
      break;
    }
    default:
      break;  // a barrier moves nothing
  }
}

// What the ranks share: one hub per group, made by the first member that asks for it, the store and the failure report.
class ThreadRun {
 public:
  ThreadRun(int num_ranks, MakeThreadBackend make)
      : num_ranks_(num_ranks),
        make_backend_(std::move(make)),
        report_({.holder = "this process", .hosts = std::vector(static_cast<std::size_t>(num_ranks), host_name())}) {}

  static std::unique_ptr<World> make_world(const std::shared_ptr<ThreadRun>& run, int rank,
                                           const WorldOptions& options);

  void abort(const std::string& message) {
    std::lock_guard lock(mutex_);
    abort_message_ = message;
    for (auto& [ranks, hub] : hubs_) hub->abort(message);
  }

 private:
  friend class ThreadWatchLine;

  std::shared_ptr<ThreadHub> hub_of(const std::vector<int>& ranks, const std::vector<int>& nodes) {
    std::lock_guard lock(mutex_);
    auto& hub = hubs_[ranks];
    if (!hub) hub = std::make_shared<ThreadHub>(ReduceOrder::by_node(nodes));
    if (!abort_message_.empty()) hub->abort(abort_message_);
    return hub;
  }

  const int num_ranks_;
  const MakeThreadBackend make_backend_;
  const c10::intrusive_ptr<c10d::Store> store_ = c10::make_intrusive<c10d::HashStore>();
  std::mutex mutex_;  // guards the hubs
  std::map<std::vector<int>, std::shared_ptr<ThreadHub>> hubs_;
  std::string abort_message_;
  std::mutex report_mutex_;  // guards what follows
  FailureReport report_;
  std::optional<Finding> finding_;
};

class ThreadWatchLine : public WatchLine {
 public:
  ThreadWatchLine(std::shared_ptr<ThreadRun> run, int rank) : run_(std::move(run)), rank_(rank) {}
  ~ThreadWatchLine() override {
    const std::lock_guard lock(run_->report_mutex_);
    run_->report_.note_leave(rank_);
  }

  void raise(const Alarm& alarm) override {
    const std::lock_guard lock(run_->report_mutex_);
    run_->report_.hear_alarm(alarm);
  }
  void publish(const std::string& flight) override {
    const std::lock_guard lock(run_->report_mutex_);
    run_->report_.hear_flight(rank_, flight);
  }
  News news() override {
    const std::lock_guard lock(run_->report_mutex_);
    if (!run_->finding_) run_->finding_ = run_->report_.conclude(Clock::now());
    return {.is_inquiry = run_->report_.is_open(), .finding = run_->finding_, .lost = {}};
  }
  std::string holder() const override { return "this process"; }

 private:
  std::shared_ptr<ThreadRun> run_;
  int rank_;
};

std::unique_ptr<World> ThreadRun::make_world(const std::shared_ptr<ThreadRun>& run, int rank,
                                             const WorldOptions& options) {
  auto impl = std::make_unique<World::Impl>();
  impl->rank = rank;
  impl->size = run->num_ranks_;
  impl->hosts.assign(static_cast<std::size_t>(impl->size), host_name());
  std::vector<Peer> roster;
  for (int r = 0; r < impl->size; ++r) roster.push_back({.rank = r, .world_size = impl->size, .host = host_name()});
  impl->layout = NodeLayout::of(roster, options.ranks_per_node);
  impl->backend_name = "threads";
  impl->store = run->store_;
  impl->make_backend = [self = impl.get(), run](const std::vector<int>& ranks, const std::string&) {
    return run->make_backend_(self->place_in(ranks), static_cast<int>(ranks.size()),
                              run->hub_of(ranks, self->nodes_of(ranks)));
  };
  const auto end = [run](const Ending& ending) { run->abort(ending.message); };
  impl->watchdog =
      std::make_unique<Watchdog>(std::make_shared<ThreadWatchLine>(run, rank), impl->recorder,
                                 WatchdogOptions{.rank = rank, .comm_timeout = options.comm_timeout, .end = end});
  return std::make_unique<World>(std::move(impl));
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
      // Of an all-to-all and of a message, carry_out() compares what each rank sends and expects.
      if (ops.front()->kind == OpKind::kSend) continue;
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
  for (auto& seat : table) seat->operation.alive.clear();  // buffers are released before the callers continue
  for (auto& seat : table) seat->work->end(error);
}

void ThreadHub::submit(int rank, HostOperation operation, c10::intrusive_ptr<HostWork> work) {
  const bool sends = operation.kind == OpKind::kSend, receives = operation.kind == OpKind::kRecv;
  Route route{-1, -1, 0};  // of collectives
  if (sends) route = {rank, operation.peer, operation.tag};
  if (receives) route = {operation.peer, rank, operation.tag};
  const std::size_t num_seats = sends || receives ? 2 : order_.members.size();
  const std::size_t own = sends || receives ? (receives ? 1 : 0) : static_cast<std::size_t>(rank);
  Table complete;
  {
    std::lock_guard lock(mutex_);
    if (abort_message_.empty()) {
      const auto place = std::pair{route, num_submitted_[{route, own}]++};
      Table& table = tables_[place];
      table.resize(num_seats);
      table[own].emplace(Seat{std::move(operation), work});
      if (!std::ranges::all_of(table, [](const auto& seat) { return seat.has_value(); })) return;
      complete = std::move(table);
      tables_.erase(place);
    }
  }
  if (complete.empty()) {
    work->end(collective_error(abort_message_));
  } else {
    run(complete);
  }
}

void ThreadHub::abort(const std::string& message) {
  decltype(tables_) waiting;
  {
    std::lock_guard lock(mutex_);
    if (!abort_message_.empty()) return;
    abort_message_ = message;
    waiting.swap(tables_);
  }
  for (auto& [place, table] : waiting) {
    for (auto& seat : table) {
      if (seat) seat->work->end(collective_error(message));
    }
  }
}

void run_thread_ranks(int num_ranks, const WorldOptions& options, const std::function<void(World&)>& body) {
  run_thread_ranks(num_ranks, options, plain_backend, body);
}

void run_thread_ranks(int num_ranks, const WorldOptions& options, const MakeThreadBackend& make,
                      const std::function<void(World&)>& body) {
  const auto run = std::make_shared<ThreadRun>(num_ranks, make);
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<World> world;
      try {
        world = ThreadRun::make_world(run, rank, options);
        body(*world);
        world->all().barrier("end of the thread world")->wait();
      } catch (const std::exception& error) {
        {
          std::lock_guard lock(mutex);
          if (!first_error) first_error = std::current_exception();
        }
        run->abort(fmt::format("rank {} failed: {}", rank, error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

std::unique_ptr<World> make_single_world(const WorldOptions& options) {
  return ThreadRun::make_world(std::make_shared<ThreadRun>(1, plain_backend), 0, options);
}

}  // namespace tessera
