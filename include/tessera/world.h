// The ranks of a run and how they communicate.
//
//   int main() {
//     return tessera::run_rank({}, [](tessera::World& world) {
//       at::Tensor x = at::full({4}, world.rank());
//       world.all().all_reduce(x)->wait();
//       return 0;
//     });
//   }
//
// Order: one World at a time per process (except the thread world of tests; only one ever under `tessera launch`),
// created before any group is used, destroyed last. Its destructor waits for operations in flight.
// Every rank of a group calls the same operations on it in the same order. An operation returns at once; do not touch
// its tensors until `wait()` on the returned work has returned. wait() throws the operation's error. For CUDA tensors
// wait() orders the current stream after the operation, as c10d does.
// Threads: one thread at a time per group; different groups may be used from different threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace tessera {

class FlightRecorder;
struct FlightEntry;

using WorkHandle = c10::intrusive_ptr<c10d::Work>;
using c10d::ReduceOp;

// A set of ranks with its own collectives. Tensors must be contiguous: a strided one is refused with the advice to call
// .contiguous(), since a hidden copy would cost memory and time. Types: float32, float16, bfloat16, int64, int32,
// uint8. Reductions: SUM, AVG, MAX, MIN; half types are summed in float32, AVG of integers is refused. On CPUs the
// order of every sum is fixed: within a node by rank, then across nodes in node order.
class Group {
 public:
  Group(std::string name, std::vector<int> ranks, c10::intrusive_ptr<c10d::Backend> backend,
        std::shared_ptr<FlightRecorder> recorder);

  const std::string& name() const { return name_; }
  int rank() const { return backend_->getRank(); }  // within the group
  int size() const { return backend_->getSize(); }
  const std::vector<int>& ranks() const { return ranks_; }  // the members' world ranks, in group order
  c10d::Backend& backend() const { return *backend_; }

  // `unit` names what is moved ("block.3"): the flight recorder and the watchdog's message show it.
  WorkHandle all_reduce(at::Tensor tensor, ReduceOp::RedOpType op = ReduceOp::SUM, std::string_view unit = {});
  // output: size() times as many elements as input, in group order. Input may be this rank's part of output.
  WorkHandle all_gather(at::Tensor output, at::Tensor input, std::string_view unit = {});
  // input: size() times as many elements as output; output receives this rank's part, and may be that part of input.
  WorkHandle reduce_scatter(at::Tensor output, at::Tensor input, ReduceOp::RedOpType op = ReduceOp::SUM,
                            std::string_view unit = {});
  WorkHandle broadcast(at::Tensor tensor, int root, std::string_view unit = {});
  WorkHandle reduce(at::Tensor tensor, int root, ReduceOp::RedOpType op = ReduceOp::SUM, std::string_view unit = {});
  // Splits: the number of elements for (from) each rank, in group order; empty: equal parts.
  WorkHandle all_to_all(at::Tensor output, at::Tensor input, std::vector<std::int64_t> output_splits = {},
                        std::vector<std::int64_t> input_splits = {}, std::string_view unit = {});
  WorkHandle send(at::Tensor tensor, int destination, std::string_view unit = {});
  WorkHandle recv(at::Tensor tensor, int source, std::string_view unit = {});
  WorkHandle barrier(std::string_view unit = {});

 private:
  // Records the call, makes it, and records its end.
  WorkHandle recorded(FlightEntry entry, const std::function<WorkHandle()>& call);
  FlightEntry entry(const char* operation, std::string_view unit, const at::Tensor& tensor, std::string detail) const;

  std::string name_;
  std::vector<int> ranks_;
  c10::intrusive_ptr<c10d::Backend> backend_;
  std::shared_ptr<FlightRecorder> recorder_;
};

struct WorldOptions {
  std::string backend = "auto";                     // auto: nccl if every rank has its own GPU, else mpi
  std::chrono::milliseconds comm_timeout{600'000};  // a collective that takes longer ends the run
  std::chrono::milliseconds start_timeout{60'000};  // ranks that have not all arrived by then end the run
  std::string device = "auto";                      // cpu, cuda; auto: cuda with nccl, else cpu
  bool share_gpus = false;                          // several ranks may use one GPU; else that is refused
  int ranks_per_node = 0;                           // > 0: pretend that nodes have this many ranks
  bool banner = true;                               // rank 0 prints 'Running on N nodes x ...'
  bool log_all_ranks = false;                       // every rank reports its start, not only rank 0
  std::map<std::string, std::string> settings;      // must be the same on all ranks; a difference is named
};

class World {
 public:
  // Finds the other ranks (README.md, 'Starting ranks') and connects to them. Throws Error with exit status 42 naming
  // the ranks that are missing or different.
  static std::unique_ptr<World> create(const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const;
  int size() const;
  int local_rank() const;
  int node_rank() const;
  int num_nodes() const;
  const std::vector<int>& node_of_rank() const;
  const std::vector<std::string>& hosts() const;  // by rank
  const std::string& backend_name() const;        // "mpi", "nccl", "threads"
  at::Device device() const;                      // where this rank's tensors live

  Group& all();     // every rank
  Group& node();    // the ranks of this node
  Group& across();  // the ranks with this local rank, one per node
  // A group of any world ranks, in the order given (sums within a node follow it). Every member calls this with the
  // same list, others do not; ranks that create several groups create them in the same order. The same list returns the
  // same group again.
  Group& group(const std::vector<int>& ranks);

  FlightRecorder& recorder();

  // Reports to the other ranks and the launcher that this rank cannot continue, then ends the process with `status`.
  // (In a thread world: ends the other ranks' operations with `message`, and throws it here.)
  [[noreturn]] void fail(const std::string& message, int status);

  struct Impl;
  explicit World(std::unique_ptr<Impl> impl);

 private:
  friend int run_rank(const WorldOptions& options, const std::function<int(World&)>& body);
  std::unique_ptr<Impl> impl_;
};

// A rank's whole life: creates the world and runs `body`; on an exception stops all ranks with one message. Throws
// nothing. Returns the exit status for main. If a rank returns a status other than 0, ranks that do not return it too
// are ended.
int run_rank(const WorldOptions& options, const std::function<int(World&)>& body);

// `num_ranks` ranks as threads of this process, for fast tests of everything that is built on groups. `body` runs once
// per rank; the first exception is rethrown when all have ended.
void run_thread_ranks(int num_ranks, const WorldOptions& options, const std::function<void(World&)>& body);

}  // namespace tessera
