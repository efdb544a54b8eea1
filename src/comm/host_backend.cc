#include "comm/host_backend.h"

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <numeric>

#include "comm/failure.h"
#include "comm/ordered_reduce.h"
#include "core/error.h"
#include "core/quantity.h"

namespace tessera {
namespace {

void check_multiple(OpKind kind, std::int64_t whole, std::int64_t part, int size, const char* names) {
  if (whole == part * size) return;
  throw Error(fmt::format("{}: expected {} with {} x {} = {} elements, got {}; pad it to a multiple of the {} ranks",
                          name_of(kind), names, size, part, size * part, whole, size));
}

std::vector<std::int64_t> complete_splits(std::vector<std::int64_t> splits, const at::Tensor& tensor, int size,
                                          const char* which) {
  if (splits.empty()) {
    if (tensor.numel() % size != 0) {
      throw Error(fmt::format("all_to_all: {} of {} elements cannot be divided evenly among {} ranks; give the splits",
                              which, tensor.numel(), size));
    }
    splits.assign(static_cast<std::size_t>(size), tensor.numel() / size);
  }
  const std::int64_t total = std::accumulate(splits.begin(), splits.end(), std::int64_t{0});
  if (static_cast<int>(splits.size()) != size || total != tensor.numel()) {
    throw Error(
        fmt::format("all_to_all: {} splits must be {} numbers that add up to {} elements, got {} that add up to {}",
                    which, size, tensor.numel(), splits.size(), total));
  }
  return splits;
}

// Starts an asynchronous copy to pinned host memory; `ready` is recorded after it on the current stream.
at::Tensor stage(const at::Tensor& device_tensor, bool copy, std::optional<c10::Event>& ready) {
  at::Tensor host = at::empty(device_tensor.sizes(), device_tensor.options().device(at::kCPU).pinned_memory(true));
  if (!copy) return host;
  host.copy_(device_tensor, /*non_blocking=*/true);
  ready.emplace(device_tensor.device().type());
  ready->record(c10::impl::VirtualGuardImpl(device_tensor.device().type()).getStream(device_tensor.device()));
  return host;
}

}  // namespace

const char* name_of(OpKind kind) {
  constexpr const char* kNames[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                    "all_to_all", "send",           "recv",       "barrier"};
  return kNames[static_cast<int>(kind)];
}

std::string HostOperation::signature() const {
  const bool reduces = kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter || kind == OpKind::kReduce;
  const bool rooted = kind == OpKind::kBroadcast || kind == OpKind::kReduce;
  return fmt::format("{} of {} {} elements{}{}", name_of(kind), std::max(input_numel, output_numel),
                     c10::toString(type), reduces ? fmt::format(", {}", name_of(reduce_op)) : "",
                     rooted ? fmt::format(", root {}", peer) : "");
}

bool HostWork::wait(std::chrono::milliseconds timeout) {
  if (drive_ && timeout == kNoTimeout) drive_(*this);
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  {
    std::unique_lock lock(mutex_);
    const auto is_done = [this] { return completed_; };
    if (timeout == kNoTimeout) {
      cv_.wait(lock, is_done);
    } else if (!cv_.wait_for(lock, timeout, is_done)) {
      throw Error(fmt::format("the operation did not finish within {}", format_duration(timeout)),
                  ExitStatus::kCollective);
    }
    if (exception_) std::rethrow_exception(exception_);
    copies.swap(copies_to_device);
  }
  for (auto& [device, host] : copies) device.copy_(host, /*non_blocking=*/true);
  return true;
}

bool HostWork::isCompleted() {
  std::lock_guard lock(mutex_);
  return completed_;
}

void HostWork::on_end(std::function<void(const std::string&)> callback) {
  std::string error;
  {
    std::lock_guard lock(mutex_);
    if (!ended_) {
      callback_ = std::move(callback);
      return;
    }
    error = error_;
  }
  callback(error);
}

void HostWork::end(std::exception_ptr error) {
  std::string message;
  if (error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      message = message_of(e);
    }
  }
  std::function<void(const std::string&)> callback;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    error_ = message;
    callback = std::move(callback_);
  }
  // The record is complete before any waiting caller continues.
  if (callback) callback(message);
  {
    std::lock_guard lock(mutex_);
    completed_ = true;
    exception_ = error;
  }
  cv_.notify_all();
}

void check_tensor(const char* operation, const at::Tensor& tensor) {
  if (!tensor.defined()) throw Error(fmt::format("{} expects a tensor, got an undefined one", operation));
  if (!tensor.is_contiguous()) {
    throw Error(fmt::format("{} expects a contiguous tensor, got sizes {} with strides {}; call .contiguous() first",
                            operation, c10::str(tensor.sizes()), c10::str(tensor.strides())));
  }
  try {
    check_reducible(tensor.scalar_type(), c10d::ReduceOp::SUM);
  } catch (const Error& error) {
    throw error.in_context(operation);
  }
}

WorkHandle HostBackend::allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) {
  return start_in_place({.kind = OpKind::kAllReduce, .reduce_op = options.reduceOp}, tensors);
}

WorkHandle HostBackend::broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) {
  return start_in_place({.kind = OpKind::kBroadcast, .peer = static_cast<int>(options.rootRank)}, tensors);
}

WorkHandle HostBackend::reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) {
  return start_in_place(
      {.kind = OpKind::kReduce, .reduce_op = options.reduceOp, .peer = static_cast<int>(options.rootRank)}, tensors);
}

WorkHandle HostBackend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions&) {
  return start({.kind = OpKind::kAllGather}, output, input);
}

WorkHandle HostBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                             const c10d::ReduceScatterOptions& options) {
  return start({.kind = OpKind::kReduceScatter, .reduce_op = options.reduceOp}, output, input);
}

WorkHandle HostBackend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                      std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions&) {
  return start({.kind = OpKind::kAllToAll, .input_splits = input_splits, .output_splits = output_splits}, output,
               input);
}

WorkHandle HostBackend::send(std::vector<at::Tensor>& tensors, int destination, int tag) {
  return start_in_place({.kind = OpKind::kSend, .peer = destination, .tag = tag}, tensors);
}

WorkHandle HostBackend::recv(std::vector<at::Tensor>& tensors, int source, int tag) {
  return start_in_place({.kind = OpKind::kRecv, .peer = source, .tag = tag}, tensors);
}

WorkHandle HostBackend::barrier(const c10d::BarrierOptions&) {
  auto work = c10::make_intrusive<HostWork>(rank_);
  submit({.kind = OpKind::kBarrier}, work);
  return work;
}

WorkHandle HostBackend::start_in_place(HostOperation operation, const std::vector<at::Tensor>& tensors) {
  if (tensors.size() != 1) {
    throw Error(fmt::format("{} expects one tensor, got {}", name_of(operation.kind), tensors.size()));
  }
  return start(std::move(operation), tensors.front(), tensors.front());
}

// Input and output may be separate or the same (in place); for all-gather and reduce-scatter, one may also be this
// rank's part of the other.
void HostBackend::check_overlap(OpKind kind, const at::Tensor& output, const at::Tensor& input) const {
  const auto* in = static_cast<const std::byte*>(input.data_ptr());
  const auto* out = static_cast<const std::byte*>(output.data_ptr());
  const auto in_bytes = static_cast<std::int64_t>(input.nbytes()),
             out_bytes = static_cast<std::int64_t>(output.nbytes());
  if (in_bytes == 0 || out_bytes == 0 || in + in_bytes <= out || out + out_bytes <= in) return;
  if (kind == OpKind::kAllGather && in == out + rank_ * in_bytes) return;
  if (kind == OpKind::kReduceScatter && out == in + rank_ * out_bytes) return;
  if (in == out && in_bytes == out_bytes && kind != OpKind::kAllToAll) return;
  throw Error(fmt::format(
      "{}: input and output overlap in a way that would change the input while it is read; use separate buffers",
      name_of(kind)));
}

WorkHandle HostBackend::start(HostOperation operation, const at::Tensor& output, const at::Tensor& input) {
  check_tensor(name_of(operation.kind), output);
  check_tensor(name_of(operation.kind), input);
  check_reducible(input.scalar_type(), operation.reduce_op);
  check_sizes_and_peer(operation, output, input);
  if (input.scalar_type() != output.scalar_type() || input.device() != output.device()) {
    throw Error(fmt::format("{}: input is {} on {}, output is {} on {}; they must have the same type and device",
                            name_of(operation.kind), c10::toString(input.scalar_type()), input.device().str(),
                            c10::toString(output.scalar_type()), output.device().str()));
  }
  check_overlap(operation.kind, output, input);
  auto work = c10::make_intrusive<HostWork>(rank_);
  at::Tensor host_input = input, host_output = output;
  if (!input.is_cpu()) {
    const bool in_place = input.data_ptr() == output.data_ptr() && input.numel() == output.numel();
    host_input = stage(input, /*copy=*/operation.kind != OpKind::kRecv, operation.ready);
    host_output = in_place ? host_input : stage(output, /*copy=*/false, operation.ready);
    if (operation.kind != OpKind::kSend) work->copies_to_device = {{output, host_output}};
  }
  operation.type = input.scalar_type();
  operation.item_bytes = static_cast<std::int64_t>(input.element_size());
  operation.input = static_cast<const std::byte*>(host_input.data_ptr());
  operation.output = static_cast<std::byte*>(host_output.data_ptr());
  operation.input_numel = input.numel();
  operation.output_numel = output.numel();
  operation.alive = {host_input, host_output};
  submit(std::move(operation), work);
  return work;
}

void HostBackend::check_sizes_and_peer(HostOperation& operation, const at::Tensor& output,
                                       const at::Tensor& input) const {
  if (operation.kind == OpKind::kAllGather) {
    check_multiple(operation.kind, output.numel(), input.numel(), size_, "an output");
  } else if (operation.kind == OpKind::kReduceScatter) {
    check_multiple(operation.kind, input.numel(), output.numel(), size_, "an input");
  } else if (operation.kind == OpKind::kAllToAll) {
    operation.input_splits = complete_splits(std::move(operation.input_splits), input, size_, "input");
    operation.output_splits = complete_splits(std::move(operation.output_splits), output, size_, "output");
  } else if (operation.peer < 0 || operation.peer >= size_) {
    throw Error(fmt::format("{}: rank {} is not in this group of {}", name_of(operation.kind), operation.peer, size_));
  }
}

}  // namespace tessera
