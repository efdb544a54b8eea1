#include "comm/mpi/reduction.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace tessera {
namespace {

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

MpiTask reduce_by_messages(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order, Parts parts,
                           std::byte* output, std::byte* share_into) {
  const Rounds rounds(parts, op.item_bytes, kChunkBytes);
  std::byte* const landing = flow.scratch.at_least(2 * flow.size * kChunkBytes);
  const auto slot = [&](std::int64_t round, int rank) {
    return landing + ((round % 2) * flow.size + rank) * kChunkBytes;
  };
  // Two rounds are in flight at once; sums travel under their own tag.
  std::array<MpiBatch, 2> receives{flow.batch(), flow.batch()}, sends{flow.batch(), flow.batch()};
  MpiBatch sums = flow.batch(MpiMark::kSecond);
  const auto post_inputs = [&](std::int64_t round) {
    const auto turn = static_cast<std::size_t>(round % 2);
    for (int distance = 1; distance < flow.size; ++distance) {
      const int from = behind(flow, distance), to = ahead(flow, distance);
      receives[turn].receive(slot(round, from), rounds.bytes(flow.rank, round), from);
      sends[turn].send(op.input + rounds.offset(to, round), rounds.bytes(to, round), to);
    }
  };
  const auto post_sums = [&](std::int64_t round) {
    for (int distance = 1; distance < flow.size; ++distance) {
      const int from = behind(flow, distance), to = ahead(flow, distance);
      sums.receive(share_into + rounds.offset(from, round), rounds.bytes(from, round), from);
      sums.send(share_into + rounds.offset(flow.rank, round), rounds.bytes(flow.rank, round), to);
    }
  };

  std::vector<const void*> sources(static_cast<std::size_t>(flow.size));
  if (rounds.count() > 0) post_inputs(0);
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    const auto turn = static_cast<std::size_t>(round % 2);
    if (round + 1 < rounds.count()) post_inputs(round + 1);
    co_await flow.all(receives[turn]);
    for (int rank = 0; rank < flow.size; ++rank) sources[static_cast<std::size_t>(rank)] = slot(round, rank);
    sources[static_cast<std::size_t>(flow.rank)] = op.input + rounds.offset(flow.rank, round);
    ordered_reduce(op.type, op.reduce_op, order, sources, output + round * rounds.chunk * op.item_bytes,
                   rounds.length(flow.rank, round));
    // The inputs have left before their place is taken by the sums.
    co_await flow.all(sends[turn]);
    if (share_into != nullptr) post_sums(round);
  }
  co_await flow.all(sums);
}

// Every rank has a segment that all can read: two turns of one slot per rank. The slot of a peer holds the input for
// it; the rank's own slot holds the sum. Two words go round: 'my inputs of this round are laid out' and 'I have added
// them (and my sum is laid out)'. A slot is reused only after every rank has sent the second word of its last use; a
// sum only after every rank has sent the first word of the round, which each sends once it has taken the last sum. So a
// later operation can start without a word of its own.
MpiTask reduce_in_shared_memory(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order, Parts parts,
                                std::byte* output, std::byte* share_into) {
  const SharedMemory& memory = *flow.shared;
  const std::int64_t slot_bytes = memory.segment_bytes() / (2 * flow.size) / 64 * 64;
  const Rounds rounds(parts, op.item_bytes, slot_bytes);
  const auto slot = [&](int owner, std::int64_t round, int rank) {
    return memory.segment(owner) + ((round % 2) * flow.size + rank) * slot_bytes;
  };
  std::array<MpiBatch, 2> laid_out{flow.batch(), flow.batch()};
  std::array<MpiBatch, 2> added{flow.batch(MpiMark::kSecond), flow.batch(MpiMark::kSecond)};
  const auto lay_out = [&](std::int64_t round) {
    MpiBatch& words = laid_out[static_cast<std::size_t>(round % 2)];
    for (int distance = 1; distance < flow.size; ++distance) {
      const int from = behind(flow, distance), to = ahead(flow, distance);
      words.receive_word(rounds.bytes(flow.rank, round), from);
      copy_bytes(slot(flow.rank, round, to), op.input + rounds.offset(to, round), rounds.bytes(to, round));
      words.send_word(rounds.bytes(to, round), to);
    }
  };
  const auto add = [&](std::int64_t round) {
    std::vector<const void*> sources;
    for (int rank = 0; rank < flow.size; ++rank) sources.push_back(slot(rank, round, flow.rank));
    sources[static_cast<std::size_t>(flow.rank)] = op.input + rounds.offset(flow.rank, round);
    std::byte* const sum = output + round * rounds.chunk * op.item_bytes;
    ordered_reduce(op.type, op.reduce_op, order, sources, sum, rounds.length(flow.rank, round));
    if (share_into != nullptr) copy_bytes(slot(flow.rank, round, flow.rank), sum, rounds.bytes(flow.rank, round));
    MpiBatch& words = added[static_cast<std::size_t>(round % 2)];
    for (int distance = 1; distance < flow.size; ++distance) {
      const int from = behind(flow, distance), to = ahead(flow, distance);
      words.receive_word(rounds.bytes(from, round), from);
      words.send_word(rounds.bytes(flow.rank, round), to);
    }
  };
  const auto take_sums = [&](std::int64_t round) {
    for (int distance = 1; share_into != nullptr && distance < flow.size; ++distance) {
      const int from = behind(flow, distance);
      copy_bytes(share_into + rounds.offset(from, round), slot(from, round, from), rounds.bytes(from, round));
    }
  };

  if (rounds.count() > 0) lay_out(0);
  for (std::int64_t round = 0; round < rounds.count(); ++round) {
    if (round > 0) {
      co_await flow.all(added[static_cast<std::size_t>((round - 1) % 2)]);
      take_sums(round - 1);
    }
    if (round + 1 < rounds.count()) lay_out(round + 1);
    co_await flow.all(laid_out[static_cast<std::size_t>(round % 2)]);
    add(round);
  }
  if (rounds.count() > 0) {
    co_await flow.all(added[static_cast<std::size_t>((rounds.count() - 1) % 2)]);
    take_sums(rounds.count() - 1);
  }
}

}  // namespace

MpiTask reduce_own_part(MpiFlow& flow, const HostOperation& op, const ReduceOrder& order, Parts parts,
                        std::byte* output, std::byte* share_into) {
  return flow.shared == nullptr ? reduce_by_messages(flow, op, order, parts, output, share_into)
                                : reduce_in_shared_memory(flow, op, order, parts, output, share_into);
}

}  // namespace tessera
