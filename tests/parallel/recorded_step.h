// One training step of a small model on ranks that are threads, as the flight recorder saw it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/engine.h"

namespace tessera {

struct Step {
  std::string strategy = "ddp";
  int num_ranks = 2;
  int ranks_per_node = 0;
  int num_micro_steps = 1;
  std::int64_t num_blocks = 2;
  at::ScalarType compute = at::kFloat, reduce = at::kFloat;
  bool forward_prefetch = true;
  BackwardPrefetch backward_prefetch = BackwardPrefetch::kPre;
  bool offload_optimizer = false, offload_parameters = false;
  bool updates_during_backward = false;
  bool checkpointed = false;
  bool is_evaluation = false;  // a forward without gradients, and nothing else
};

struct Call {
  std::string what;  // "gather", "reduce", "add across nodes"
  std::string unit;
  std::int64_t bytes = 0;  // of the larger of input and output

  std::string name() const { return what + " " + unit; }
  bool operator==(const Call&) const = default;
};

// The second of two steps: it includes what the first left in flight. All ranks must make the same calls, or the test
// fails; these are rank 0's.
std::vector<Call> record(const Step& step);

// "gather root; gather block_0; ..."
std::string in_order(const std::vector<Call>& calls);

// How many bytes the call should carry.
std::int64_t expected_bytes(const Step& step, const Call& call);

}  // namespace tessera
