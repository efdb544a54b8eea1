#include <ATen/record_function.h>
#include <fmt/format.h>

#include "comm/flight_recorder.h"
#include "comm/host_backend.h"
#include "comm/ordered_reduce.h"
#include "tessera/world.h"

namespace tessera {

Group::Group(std::string name, std::vector<int> ranks, c10::intrusive_ptr<c10d::Backend> backend,
             std::shared_ptr<FlightRecorder> recorder)
    : name_(std::move(name)), ranks_(std::move(ranks)), backend_(std::move(backend)), recorder_(std::move(recorder)) {}

FlightEntry Group::entry(const char* operation, std::string_view unit, const at::Tensor& tensor,
                         std::string detail) const {
  check_tensor(operation, tensor);
  FlightEntry entry;
  entry.group = name_;
  entry.ranks = ranks_;
  entry.operation = operation;
  entry.unit = unit;
  entry.bytes = static_cast<std::int64_t>(tensor.nbytes());
  entry.detail = fmt::format("{}{}", c10::toString(tensor.scalar_type()), detail.empty() ? "" : ' ' + detail);
  return entry;
}

WorkHandle Group::recorded(FlightEntry entry, const std::function<WorkHandle()>& call) {
  at::RecordFunction traced(at::RecordScope::USER_SCOPE);  // seen by a profiler, if one runs
  if (traced.isActive()) traced.before(entry.name());
  const std::uint64_t id = recorder_->begin(std::move(entry));
  WorkHandle work;
  try {
    work = call();
  } catch (...) {
    recorder_->cancel(id);  // refused before it started; the caller may continue
    throw;
  }
  if (auto host_work = c10::dynamic_intrusive_pointer_cast<HostWork>(work)) {
    host_work->on_end([recorder = recorder_, id](const std::string& error) { recorder->finish(id, error); });
  } else {
    recorder_->finish_when(id, [work] {
      if (!work->isCompleted()) return false;
      if (const auto error = work->exception()) std::rethrow_exception(error);  // it counts as completed, too
      return true;
    });
  }
  return work;
}

WorkHandle Group::all_reduce(at::Tensor tensor, ReduceOp::RedOpType op, std::string_view unit) {
  check_reducible(tensor.scalar_type(), op);
  return recorded(entry("all_reduce", unit, tensor, name_of(op)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->allreduce(tensors, {.reduceOp = op});
  });
}

WorkHandle Group::all_gather(at::Tensor output, at::Tensor input, std::string_view unit) {
  check_tensor("all_gather", input);
  return recorded(entry("all_gather", unit, output, ""), [&] { return backend_->_allgather_base(output, input); });
}

WorkHandle Group::reduce_scatter(at::Tensor output, at::Tensor input, ReduceOp::RedOpType op, std::string_view unit) {
  check_reducible(input.scalar_type(), op);
  check_tensor("reduce_scatter", output);
  return recorded(entry("reduce_scatter", unit, input, name_of(op)),
                  [&] { return backend_->_reduce_scatter_base(output, input, {.reduceOp = op}); });
}

WorkHandle Group::broadcast(at::Tensor tensor, int root, std::string_view unit) {
  return recorded(entry("broadcast", unit, tensor, fmt::format("from rank {}", root)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->broadcast(tensors, {.rootRank = root});
  });
}

WorkHandle Group::reduce(at::Tensor tensor, int root, ReduceOp::RedOpType op, std::string_view unit) {
  check_reducible(tensor.scalar_type(), op);
  return recorded(entry("reduce", unit, tensor, fmt::format("{} to rank {}", name_of(op), root)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->reduce(tensors, {.reduceOp = op, .rootRank = root});
  });
}

WorkHandle Group::all_to_all(at::Tensor output, at::Tensor input, std::vector<std::int64_t> output_splits,
                             std::vector<std::int64_t> input_splits, std::string_view unit) {
  check_tensor("all_to_all", output);
  return recorded(entry("all_to_all", unit, input, ""),
                  [&] { return backend_->alltoall_base(output, input, output_splits, input_splits); });
}

WorkHandle Group::send(at::Tensor tensor, int destination, std::string_view unit) {
  return recorded(entry("send", unit, tensor, fmt::format("to rank {}", destination)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->send(tensors, destination, 0);
  });
}

WorkHandle Group::recv(at::Tensor tensor, int source, std::string_view unit) {
  return recorded(entry("recv", unit, tensor, fmt::format("from rank {}", source)), [&] {
    std::vector<at::Tensor> tensors{tensor};
    return backend_->recv(tensors, source, 0);
  });
}

WorkHandle Group::barrier(std::string_view unit) {
  FlightEntry record;
  record.group = name_;
  record.ranks = ranks_;
  record.operation = "barrier";
  record.unit = unit;
  return recorded(std::move(record), [&] { return backend_->barrier(); });
}

}  // namespace tessera
