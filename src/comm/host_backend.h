// What our own backends (MPI, threads) share: c10d's interface on one side, one plain description of an operation on
// the other.
//
// A subclass implements `submit`. Arguments have been checked by then. CUDA tensors are staged: their data is copied
// to pinned host memory before the operation may start (`HostOperation::ready`), and back when the caller waits.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "tessera/world.h"

namespace tessera {

enum class OpKind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kAllToAll, kSend, kRecv, kBarrier };
const char* name_of(OpKind kind);

// The two may be one buffer, or overlap.
inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes > 0 && to != from) std::memmove(to, from, static_cast<std::size_t>(bytes));
}

// One operation in host memory. Buffers follow c10d: in-place operations (all-reduce, broadcast, reduce, send, recv)
// have input == output.
struct HostOperation {
  OpKind kind = OpKind::kBarrier;
  c10::ScalarType type = c10::kByte;
  c10d::ReduceOp::RedOpType reduce_op = c10d::ReduceOp::SUM;
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::int64_t input_numel = 0, output_numel = 0;
  std::int64_t item_bytes = 1;
  int peer = 0;                                               // root, destination or source: a group rank
  int tag = 0;                                                // of send and recv
  std::vector<std::int64_t> input_splits{}, output_splits{};  // of all-to-all
  std::vector<at::Tensor> alive{};                            // keeps the buffers until the operation has ended
  std::optional<c10::Event> ready{};                          // CUDA: the copy to the host is done

  // What must be the same on all ranks.
  std::string signature() const;
};

// The thread that carries out the operation ends it; the caller waits for it. The base's own wait() and finish() are
// not used: they lock inside libtorch, where the thread sanitizer cannot see it.
class HostWork : public c10d::Work {
 public:
  explicit HostWork(int rank) : c10d::Work(rank) {}

  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  bool isCompleted() override;
  // Calls back with the error, if any, when the operation ends: from the thread that ends it, or at once if it has
  // already ended.
  void on_end(std::function<void(const std::string& error)> callback);

  void end(std::exception_ptr error = nullptr);

  // Lets a waiting caller help: wait() calls it, and it returns when the operation has ended. Set before the work is
  // shared.
  void drive_while_waiting(std::function<void(HostWork&)> drive) { drive_ = std::move(drive); }

  // CUDA: what remains to be copied to the device, by the first caller that waits, on its current stream.
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_to_device;  // (device, host)

 private:
  bool ended_ = false;  // set before the callback runs, completed_ after it
  std::string error_;
  std::function<void(const std::string&)> callback_;
  std::function<void(HostWork&)> drive_;
};

class HostBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;

  WorkHandle allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  WorkHandle broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  WorkHandle reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  WorkHandle _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkHandle _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                  const c10d::ReduceScatterOptions& options) override;
  WorkHandle alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                           std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkHandle send(std::vector<at::Tensor>& tensors, int destination, int tag) override;
  WorkHandle recv(std::vector<at::Tensor>& tensors, int source, int tag) override;
  WorkHandle barrier(const c10d::BarrierOptions& options) override;

 protected:
  // Starts the operation after all earlier ones of this backend (send and recv: at once) and ends `work` when it is
  // done.
  virtual void submit(HostOperation operation, c10::intrusive_ptr<HostWork> work) = 0;

 private:
  WorkHandle start_in_place(HostOperation operation, const std::vector<at::Tensor>& tensors);
  WorkHandle start(HostOperation operation, const at::Tensor& output, const at::Tensor& input);
  void check_overlap(OpKind kind, const at::Tensor& output, const at::Tensor& input) const;
  // Completes the splits of an all-to-all.
  void check_sizes_and_peer(HostOperation& operation, const at::Tensor& output, const at::Tensor& input) const;
};

// Contiguous, one of the six types; throws Error naming operation and tensor. Shared with Group, for NCCL's tensors.
void check_tensor(const char* operation, const at::Tensor& tensor);

}  // namespace tessera
