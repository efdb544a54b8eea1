// Sums in a fixed order: the same inputs give the same bits, whatever the size, the shard or the operation.
//
// Order: within each node by rank, then across nodes in node order. Half types are added in float32 and rounded once
// per node and once at the end, so that reducing within the nodes first and then across them (HYBRID_SHARD) gives the
// bits of one flat reduction.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <span>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace tessera {

// The members of a group by node: group ranks in the order in which they are added, and how many each node has.
struct ReduceOrder {
  std::vector<int> members;     // group ranks, node by node
  std::vector<int> node_sizes;  // sum = members.size()

  // `node_of_member[r]` is the node of group rank r. Nodes come in the order of their numbers.
  static ReduceOrder by_node(const std::vector<int>& node_of_member);
};

// output[i] = the reduction of sources[r][i] over the group ranks r, for i < numel. `output` may be one of the
// sources (the same address, not a shifted one).
void ordered_reduce(c10::ScalarType type, c10d::ReduceOp::RedOpType op, const ReduceOrder& order,
                    std::span<const void* const> sources, void* output, std::int64_t numel);

// Throws Error naming both for a type or a reduction that none of our backends has, or for AVG of integers.
void check_reducible(c10::ScalarType type, c10d::ReduceOp::RedOpType op);
const char* name_of(c10d::ReduceOp::RedOpType op);

}  // namespace tessera
