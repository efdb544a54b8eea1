// The collectives of the MPI backend, built on point-to-point messages. MPI's own reductions are not used: the order in
// which they add depends on the size and on where the ranks are, and ours must not (ordered_reduce.h).
//
// In a reduction, rank k gets the k-th part of every rank and adds them in the fixed order. Each rank sends and
// receives (P-1)/P of the data, the least possible; all-reduce adds an all-gather of the parts.
#include <algorithm>
#include <array>
#include <vector>

#include "comm/mpi/channel.h"

namespace tessera {
namespace {

// A buffer cut into one part per rank: all equal except the last ones, which may be short or empty.
struct Parts {
  std::int64_t numel;
  int size;
  std::int64_t stride() const { return (numel + size - 1) / size; }
  std::int64_t begin(int rank) const { return std::min(numel, rank * stride()); }
  std::int64_t length(int rank) const { return std::min(numel, (rank + 1) * stride()) - begin(rank); }
};

// The `distance`-th peer behind or ahead: every rank starts with a different one, so that no rank is flooded.
int ahead(const MpiChannel& channel, int distance) {
  return (channel.rank + distance) % channel.size;
}
int behind(const MpiChannel& channel, int distance) {
  return (channel.rank + channel.size - distance) % channel.size;
}

// Large enough that a message's overhead is nothing, small enough that two of them per peer stay in the cache. (Two
// ranks on two cores, 64 MB: 6.5 GB/s with 128 KiB, 7.3 with 256, 8.0 with 512, 8.3 with 1024.)
constexpr std::int64_t kChunkBytes = 512 * 1024;

// The parts of a reduction cut into rounds of one chunk per rank. The last rounds of a rank may be short or empty.
struct Rounds {
  Parts parts;
  std::int64_t item_bytes, chunk;  // chunk: items of one round of one rank

  Rounds(Parts buffer, std::int64_t item, std::int64_t chunk_bytes)
      : parts(buffer), item_bytes(item), chunk(chunk_bytes / item) {}
  std::int64_t count() const { return (parts.stride() + chunk - 1) / chunk; }
  std::int64_t length(int rank, std::int64_t round) const {
    return std::clamp<std::int64_t>(parts.length(rank) - round * chunk, 0, chunk);
  }
  std::int64_t bytes(int rank, std::int64_t round) const { return length(rank, round) * item_bytes; }
  std::int64_t offset(int rank, std::int64_t round) const { return (parts.begin(rank) + round * chunk) * item_bytes; }
};

MpiTask reduce_by_messages(MpiChannel& channel, const HostOperation& op, Parts parts, std::byte* output,
                           std::byte* share_into) {
  const Rounds rounds(parts, op.item_bytes, kChunkBytes);
  std::byte* const landing = channel.group.scratch.at_least(2 * channel.size * kChunkBytes);
  const auto slot = [&](std::int64_t round, int rank) {
    return landing + ((round % 2) * channel.size + rank) * kChunkBytes;
  };
  // Two rounds are in flight at once; sums travel under their own tag.
  std::array<MpiBatch, 2> receives{channel.batch(), channel.batch()}, sends{channel.batch(), channel.batch()};
  MpiBatch sums = channel.batch(MpiMark::kSecond);
  const auto post_inputs = [&](std::int64_t round) {
    const auto turn = static_cast<std::size_t>(round % 2);
    for (int distance = 1; distance < channel.size; ++distance) {
      const int from = behind(channel, distance), to = ahead(channel, distance);
      receives[turn].receive(slot(round, from), rounds.bytes(channel.rank, round), from);
      sends[turn].send(op.input + rounds.offset(to, round), rounds.bytes(to, round), to);
    }
  };
  const auto post_sums = [&](std::int64_t round) {
    for (int distance = 1; distance < channel.size; ++distance) {
      const int from = behind(channel, distance), to = ahead(channel, distance);
      sums.receive(share_into + rounds.offset(from, round), rounds.bytes(from, round), from);
      sums.send(share_into + rounds.offset(channel.rank, round), rounds.bytes(channel.rank, round), to);
    }
  };

  std::vector<const void*> sources(static_cast<std::size_t>(channel.size));
  if (rounds.count() > 0) post_inputs(0);
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    const auto turn = static_cast<std::size_t>(round % 2);
    if (round + 1 < rounds.count()) post_inputs(round + 1);
    co_await channel.all(receives[turn]);
    for (int rank = 0; rank < channel.size; ++rank) sources[static_cast<std::size_t>(rank)] = slot(round, rank);
    sources[static_cast<std::size_t>(channel.rank)] = op.input + rounds.offset(channel.rank, round);
    ordered_reduce(op.type, op.reduce_op, channel.group.order, sources, output + round * rounds.chunk * op.item_bytes,
                   rounds.length(channel.rank, round));
    // The inputs have left before their place is taken by the sums.
    co_await channel.all(sends[turn]);
    if (share_into != nullptr) post_sums(round);
  }
  co_await channel.all(sums);
}

// Every rank has a segment that all can read: two turns of one slot per rank. The slot of a peer holds the input for
// it; the rank's own slot holds the sum. Two signals go round: 'my inputs of this round are laid out' and 'I have added
// them (and my sum is laid out)'. A slot is reused only after every rank has sent the second signal of its last use; a
// sum only after every rank has sent the first signal of the round, which each sends once it has taken the last sum. So
// a later operation can start without a signal of its own.
MpiTask reduce_in_shared_memory(MpiChannel& channel, const HostOperation& op, Parts parts, std::byte* output,
                                std::byte* share_into) {
  const SharedMemory& memory = *channel.group.shared;
  const std::int64_t slot_bytes = memory.segment_bytes() / (2 * channel.size) / 64 * 64;
  const Rounds rounds(parts, op.item_bytes, slot_bytes);
  const auto slot = [&](int owner, std::int64_t round, int rank) {
    return memory.segment(owner) + ((round % 2) * channel.size + rank) * slot_bytes;
  };
  std::array<MpiBatch, 2> laid_out{channel.batch(), channel.batch()};
  std::array<MpiBatch, 2> added{channel.batch(MpiMark::kSecond), channel.batch(MpiMark::kSecond)};
  const auto lay_out = [&](std::int64_t round) {
    MpiBatch& signals = laid_out[static_cast<std::size_t>(round % 2)];
    for (int distance = 1; distance < channel.size; ++distance) {
      const int from = behind(channel, distance), to = ahead(channel, distance);
      signals.receive_signal(rounds.bytes(channel.rank, round), from);
      copy_bytes(slot(channel.rank, round, to), op.input + rounds.offset(to, round), rounds.bytes(to, round));
      signals.send_signal(rounds.bytes(to, round), to);
    }
  };
  const auto add = [&](std::int64_t round) {
    std::vector<const void*> sources;
    for (int rank = 0; rank < channel.size; ++rank) sources.push_back(slot(rank, round, channel.rank));
    sources[static_cast<std::size_t>(channel.rank)] = op.input + rounds.offset(channel.rank, round);
    std::byte* const sum = output + round * rounds.chunk * op.item_bytes;
    ordered_reduce(op.type, op.reduce_op, channel.group.order, sources, sum, rounds.length(channel.rank, round));
    if (share_into != nullptr)
      copy_bytes(slot(channel.rank, round, channel.rank), sum, rounds.bytes(channel.rank, round));
    MpiBatch& signals = added[static_cast<std::size_t>(round % 2)];
    for (int distance = 1; distance < channel.size; ++distance) {
      const int from = behind(channel, distance), to = ahead(channel, distance);
      signals.receive_signal(rounds.bytes(from, round), from);
      signals.send_signal(rounds.bytes(channel.rank, round), to);
    }
  };
  const auto take_sums = [&](std::int64_t round) {
    for (int distance = 1; share_into != nullptr && distance < channel.size; ++distance) {
      const int from = behind(channel, distance);
      copy_bytes(share_into + rounds.offset(from, round), slot(from, round, from), rounds.bytes(from, round));
    }
  };

  if (rounds.count() > 0) lay_out(0);
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    if (round > 0) {
      co_await channel.all(added[static_cast<std::size_t>((round - 1) % 2)]);
      take_sums(round - 1);
    }
    if (round + 1 < rounds.count()) lay_out(round + 1);
    co_await channel.all(laid_out[static_cast<std::size_t>(round % 2)]);
    add(round);
  }
  if (rounds.count() > 0) {
    co_await channel.all(added[static_cast<std::size_t>((rounds.count() - 1) % 2)]);
    take_sums(rounds.count() - 1);
  }
}

// Reduces this rank's part of every rank's input into `output` (which may be that part of its own input), chunk by
// chunk: while one chunk is added, the next is on its way. With `share_into`, a whole buffer whose own part is
// `output`, each chunk is sent to all ranks as soon as it is added: that makes it an all-reduce.
//
// Between hosts the parts travel as messages. Ranks of one host put them into shared memory and only signal that they
// are there (by an empty message, whose tag still tells wrong sizes apart): one copy per byte instead of MPI's two, and
// no handshake for a large message.
MpiTask reduce_own_part(MpiChannel& channel, const HostOperation& op, Parts parts, std::byte* output,
                        std::byte* share_into = nullptr) {
  return channel.group.shared == nullptr ? reduce_by_messages(channel, op, parts, output, share_into)
                                         : reduce_in_shared_memory(channel, op, parts, output, share_into);
}

// Up to here one exchange of the whole buffer is faster than two steps on parts: latency, not bandwidth, decides.
constexpr std::int64_t kSmallBytes = 16 * 1024;

// Sends every rank's part of `buffer` to every rank; this rank's part is already in place.
MpiTask gather_parts(MpiChannel& channel, std::byte* buffer, Parts parts, std::int64_t item_bytes) {
  MpiBatch batch = channel.batch();
  for (int distance = 1; distance < channel.size; ++distance) {
    const int from = behind(channel, distance), to = ahead(channel, distance);
    batch.receive(buffer + parts.begin(from) * item_bytes, parts.length(from) * item_bytes, from);
    batch.send(buffer + parts.begin(channel.rank) * item_bytes, parts.length(channel.rank) * item_bytes, to);
  }
  co_await channel.all(batch);
}

// Every rank sends its whole buffer to every rank, and each adds them: one step.
MpiTask all_reduce_small(MpiChannel& channel, const HostOperation& op) {
  const std::int64_t bytes = op.input_numel * op.item_bytes;
  std::byte* const landing = channel.group.scratch.at_least(channel.size * bytes);
  std::vector<const void*> sources(static_cast<std::size_t>(channel.size), op.input);
  MpiBatch batch = channel.batch();
  for (int distance = 1; distance < channel.size; ++distance) {
    const int from = behind(channel, distance);
    sources[static_cast<std::size_t>(from)] = landing + from * bytes;
    batch.receive(landing + from * bytes, bytes, from);
    batch.send(op.input, bytes, ahead(channel, distance));
  }
  co_await channel.all(batch);
  ordered_reduce(op.type, op.reduce_op, channel.group.order, sources, op.output, op.input_numel);
}

MpiTask all_reduce(MpiChannel& channel, const HostOperation& op) {
  if (op.input_numel * op.item_bytes <= kSmallBytes) {
    co_await all_reduce_small(channel, op);
    co_return;
  }
  const Parts parts{op.input_numel, channel.size};
  co_await reduce_own_part(channel, op, parts, op.output + parts.begin(channel.rank) * op.item_bytes, op.output);
}

// Like all-reduce, but the parts go only to the root, and the others keep their input as it is.
MpiTask reduce(MpiChannel& channel, const HostOperation& op) {
  const Parts parts{op.input_numel, channel.size};
  const bool is_root = channel.rank == op.peer;
  const std::int64_t own_bytes = parts.length(channel.rank) * op.item_bytes;
  std::byte* target = is_root ? op.output + parts.begin(channel.rank) * op.item_bytes : channel.allocate(own_bytes);
  co_await reduce_own_part(channel, op, parts, target);
  MpiBatch batch = channel.batch();
  if (!is_root) batch.send(target, own_bytes, op.peer);
  for (int from = 0; is_root && from < channel.size; ++from) {
    if (from == channel.rank) continue;
    batch.receive(op.output + parts.begin(from) * op.item_bytes, parts.length(from) * op.item_bytes, from);
  }
  co_await channel.all(batch);
}

MpiTask all_gather(MpiChannel& channel, const HostOperation& op) {
  const Parts parts{op.output_numel, channel.size};
  copy_bytes(op.output + parts.begin(channel.rank) * op.item_bytes, op.input, op.input_numel * op.item_bytes);
  co_await gather_parts(channel, op.output, parts, op.item_bytes);
}

// Large: the root hands out one part per rank and the ranks share them, so that no rank sends more than twice the data.
MpiTask broadcast(MpiChannel& channel, const HostOperation& op) {
  const bool is_root = channel.rank == op.peer;
  const bool whole = op.input_numel * op.item_bytes <= kSmallBytes;
  const Parts parts{op.input_numel, channel.size};
  const auto offset = [&](int rank) { return whole ? 0 : parts.begin(rank) * op.item_bytes; };
  const auto bytes = [&](int rank) { return (whole ? op.input_numel : parts.length(rank)) * op.item_bytes; };
  MpiBatch parts_of_root = channel.batch();
  for (int distance = 1; is_root && distance < channel.size; ++distance) {
    const int to = ahead(channel, distance);
    parts_of_root.send(op.input + offset(to), bytes(to), to);
  }
  if (!is_root) parts_of_root.receive(op.output + offset(channel.rank), bytes(channel.rank), op.peer);
  co_await channel.all(parts_of_root);
  if (whole) co_return;
  MpiBatch shared = channel.batch(MpiMark::kSecond);
  for (int distance = 1; distance < channel.size; ++distance) {
    const int from = behind(channel, distance), to = ahead(channel, distance);
    if (!is_root) shared.receive(op.output + offset(from), bytes(from), from);
    if (to != op.peer) shared.send(op.input + offset(channel.rank), bytes(channel.rank), to);
  }
  co_await channel.all(shared);
}

MpiTask all_to_all(MpiChannel& channel, const HostOperation& op) {
  std::vector<std::int64_t> input_begin(op.input_splits.size()), output_begin(op.output_splits.size());
  for (std::size_t i = 1; i < input_begin.size(); ++i) {
    input_begin[i] = input_begin[i - 1] + op.input_splits[i - 1];
    output_begin[i] = output_begin[i - 1] + op.output_splits[i - 1];
  }
  const auto own = static_cast<std::size_t>(channel.rank);
  copy_bytes(op.output + output_begin[own] * op.item_bytes, op.input + input_begin[own] * op.item_bytes,
             op.input_splits[own] * op.item_bytes);
  MpiBatch batch = channel.batch();
  for (int distance = 1; distance < channel.size; ++distance) {
    const auto from = static_cast<std::size_t>(behind(channel, distance)),
               to = static_cast<std::size_t>(ahead(channel, distance));
    batch.receive(op.output + output_begin[from] * op.item_bytes, op.output_splits[from] * op.item_bytes,
                  static_cast<int>(from));
    batch.send(op.input + input_begin[to] * op.item_bytes, op.input_splits[to] * op.item_bytes, static_cast<int>(to));
  }
  co_await channel.all(batch);
}

MpiTask point_to_point(MpiChannel& channel, const HostOperation& op) {
  MpiBatch batch = channel.batch();
  const std::int64_t bytes = op.input_numel * op.item_bytes;
  if (op.kind == OpKind::kSend) {
    batch.send(op.input, bytes, op.peer);
  } else {
    batch.receive(op.output, bytes, op.peer);
  }
  co_await channel.all(batch);
}

MpiTask barrier(MpiChannel& channel) {
  MPI_Request request;
  check_mpi(MPI_Ibarrier(channel.group.communicator, &request), "MPI_Ibarrier");
  MpiBatch batch = channel.batch();
  batch.add(request);
  co_await channel.all(batch);
}

MpiTask reduce_scatter(MpiChannel& channel, const HostOperation& op) {
  co_await reduce_own_part(channel, op, Parts{op.input_numel, channel.size}, op.output);
}

}  // namespace

MpiTask carry_out(MpiChannel& channel, const HostOperation& operation) {
  switch (operation.kind) {
    case OpKind::kAllReduce:
      return all_reduce(channel, operation);
    case OpKind::kReduceScatter:
      return reduce_scatter(channel, operation);
    case OpKind::kAllGather:
      return all_gather(channel, operation);
    case OpKind::kBroadcast:
      return broadcast(channel, operation);
    case OpKind::kReduce:
      return reduce(channel, operation);
    case OpKind::kAllToAll:
      return all_to_all(channel, operation);
    case OpKind::kBarrier:
      return barrier(channel);
    default:
      return point_to_point(channel, operation);
  }
}

}  // namespace tessera
