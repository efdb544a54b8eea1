#include "comm/mpi/collectives.h"

#include <cstring>
#include <vector>

#include "comm/mpi/parts.h"
#include "comm/mpi/reduction.h"

namespace tessera {
namespace {

// Up to here one exchange of the whole buffer is faster than two steps on parts: latency, not bandwidth, decides.
constexpr std::int64_t kSmallBytes = 16 * 1024;

// Sends every rank's part of `buffer` to every rank; this rank's part is already in place.
MpiTask gather_parts(MpiFlow& flow, std::byte* buffer, Parts parts, std::int64_t item_bytes) {
  MpiBatch batch = flow.batch();
  for (int distance = 1; distance < flow.size; ++distance) {
    const int from = behind(flow, distance), to = ahead(flow, distance);
    batch.receive(buffer + parts.begin(from) * item_bytes, parts.length(from) * item_bytes, from);
    batch.send(buffer + parts.begin(flow.rank) * item_bytes, parts.length(flow.rank) * item_bytes, to);
  }
  co_await flow.all(batch);
}

// Every rank sends its whole buffer to every rank, and each adds them: one step.
MpiTask all_reduce_small(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order) {
  const std::int64_t bytes = op.input_numel * op.item_bytes;
  std::byte* const landing = flow.scratch.at_least(flow.size * bytes);
  std::vector<const void*> sources(static_cast<std::size_t>(flow.size), op.input);
  MpiBatch batch = flow.batch();
  for (int distance = 1; distance < flow.size; ++distance) {
    const int from = behind(flow, distance);
    sources[static_cast<std::size_t>(from)] = landing + from * bytes;
    batch.receive(landing + from * bytes, bytes, from);
    batch.send(op.input, bytes, ahead(flow, distance));
  }
  co_await flow.all(batch);
  ordered_reduce(op.type, op.reduce_op, order, sources, op.output, op.input_numel);
}

MpiTask all_reduce(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order) {
  if (op.input_numel * op.item_bytes <= kSmallBytes) {
    co_await all_reduce_small(flow, op, order);
    co_return;
  }
  const Parts parts{op.input_numel, flow.size};
  co_await reduce_own_part(flow, op, order, parts, op.output + parts.begin(flow.rank) * op.item_bytes, op.output);
}

// Like all-reduce, but the parts go only to the root, and the others keep their input as it is.
MpiTask reduce(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order) {
  const Parts parts{op.input_numel, flow.size};
  const bool is_root = flow.rank == op.peer;
  const std::int64_t own_bytes = parts.length(flow.rank) * op.item_bytes;
  std::byte* target = is_root ? op.output + parts.begin(flow.rank) * op.item_bytes : flow.allocate(own_bytes);
  co_await reduce_own_part(flow, op, order, parts, target);
  MpiBatch batch = flow.batch();
  if (!is_root) batch.send(target, own_bytes, op.peer);
  for (int from = 0; is_root && from < flow.size; ++from) {
    if (from == flow.rank) continue;
    batch.receive(op.output + parts.begin(from) * op.item_bytes, parts.length(from) * op.item_bytes, from);
  }
  co_await flow.all(batch);
}

MpiTask all_gather(MpiFlow& flow, const HostOperation& op) {
  const Parts parts{op.output_numel, flow.size};
  copy_bytes(op.output + parts.begin(flow.rank) * op.item_bytes, op.input, op.input_numel * op.item_bytes);
  co_await gather_parts(flow, op.output, parts, op.item_bytes);
}

// Large: the root hands out one part per rank and the ranks share them, so that no rank sends more than twice the data.
MpiTask broadcast(MpiFlow& flow, const HostOperation& op) {
  const bool is_root = flow.rank == op.peer;
  const bool whole = op.input_numel * op.item_bytes <= kSmallBytes;
  const Parts parts{op.input_numel, flow.size};
  const auto offset = [&](int rank) { return whole ? 0 : parts.begin(rank) * op.item_bytes; };
  const auto bytes = [&](int rank) { return (whole ? op.input_numel : parts.length(rank)) * op.item_bytes; };
  MpiBatch parts_of_root = flow.batch();
  for (int distance = 1; is_root && distance < flow.size; ++distance) {
    const int to = ahead(flow, distance);
    parts_of_root.send(op.input + offset(to), bytes(to), to);
  }
  if (!is_root) parts_of_root.receive(op.output + offset(flow.rank), bytes(flow.rank), op.peer);
  co_await flow.all(parts_of_root);
  if (whole) co_return;
  MpiBatch shared = flow.batch(MpiMark::kSecond);
  for (int distance = 1; distance < flow.size; ++distance) {
    const int from = behind(flow, distance), to = ahead(flow, distance);
    if (!is_root) shared.receive(op.output + offset(from), bytes(from), from);
    if (to != op.peer) shared.send(op.input + offset(flow.rank), bytes(flow.rank), to);
  }
  co_await flow.all(shared);
}

MpiTask all_to_all(MpiFlow& flow, const HostOperation& op) {
  std::vector<std::int64_t> input_begin(op.input_splits.size()), output_begin(op.output_splits.size());
  for (std::size_t i = 1; i < input_begin.size(); ++i) {
    input_begin[i] = input_begin[i - 1] + op.input_splits[i - 1];
    output_begin[i] = output_begin[i - 1] + op.output_splits[i - 1];
  }
  const auto own = static_cast<std::size_t>(flow.rank);
  copy_bytes(op.output + output_begin[own] * op.item_bytes, op.input + input_begin[own] * op.item_bytes,
             op.input_splits[own] * op.item_bytes);
  MpiBatch batch = flow.batch();
  for (int distance = 1; distance < flow.size; ++distance) {
    const auto from = static_cast<std::size_t>(behind(flow, distance)),
               to = static_cast<std::size_t>(ahead(flow, distance));
    batch.receive(op.output + output_begin[from] * op.item_bytes, op.output_splits[from] * op.item_bytes,
                  static_cast<int>(from));
    batch.send(op.input + input_begin[to] * op.item_bytes, op.input_splits[to] * op.item_bytes, static_cast<int>(to));
  }
  co_await flow.all(batch);
}

MpiTask point_to_point(MpiFlow& flow, const HostOperation& op) {
  MpiBatch batch = flow.batch();
  const std::int64_t bytes = op.input_numel * op.item_bytes;
  if (op.kind == OpKind::kSend) {
    batch.send(op.input, bytes, op.peer);
  } else {
    batch.receive(op.output, bytes, op.peer);
  }
  co_await flow.all(batch);
}

MpiTask barrier(MpiFlow& flow) {
  MPI_Request request;
  check_mpi(MPI_Ibarrier(flow.communicator, &request), "MPI_Ibarrier");
  MpiBatch batch = flow.batch();
  batch.add(request);
  co_await flow.all(batch);
}

MpiTask reduce_scatter(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order) {
  co_await reduce_own_part(flow, op, order, Parts{op.input_numel, flow.size}, op.output);
}

}  // namespace

MpiTask carry_out(MpiFlow& flow, const HostOperation& operation, const ReduceOrder& order) {
  switch (operation.kind) {
    case OpKind::kAllReduce:
      return all_reduce(flow, operation, order);
    case OpKind::kReduceScatter:
      return reduce_scatter(flow, operation, order);
    case OpKind::kAllGather:
      return all_gather(flow, operation);
    case OpKind::kBroadcast:
      return broadcast(flow, operation);
    case OpKind::kReduce:
      return reduce(flow, operation, order);
    case OpKind::kAllToAll:
      return all_to_all(flow, operation);
    case OpKind::kBarrier:
      return barrier(flow);
    default:
      return point_to_point(flow, operation);
  }
}

}  // namespace tessera
