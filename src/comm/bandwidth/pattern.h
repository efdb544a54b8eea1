// Test data for which the result of every collective is known and exact in each of the six types.
//
// Rank r's element i in round `seed` is a small whole number from a hash of (seed, r, i mod 65521): small enough that
// the sum over all ranks is at most 255, which uint8 and bfloat16 still hold exactly. The period is a prime, so that
// no part, chunk or page boundary falls on it: data that lands in the wrong place is detected.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace tessera {

struct Mismatch {
  std::int64_t num_wrong = 0;
  std::int64_t first_index = -1;  // in the tensor that was checked
  double expected = 0, found = 0;
};

class TestPattern {
 public:
  static constexpr std::int64_t kPeriod = 65521;

  TestPattern(int num_ranks, at::ScalarType type, at::Device device, int seed);

  // One period of rank r's data, and of the reduction over all ranks (in double if it is an average).
  at::Tensor of_rank(int rank) const;
  at::Tensor reduced(c10d::ReduceOp::RedOpType op) const;

  // The value alone; `index` counts from the start of the rank's data.
  int value(int rank, std::int64_t index) const;

 private:
  at::Tensor table(const std::vector<double>& values, at::ScalarType type) const;

  int num_ranks_;
  at::ScalarType type_;
  at::Device device_;
  std::uint32_t seed_;
  int largest_;  // the largest value of an element
};

// Element i of `buffer` becomes period[(begin + i) % kPeriod].
void fill_periodic(const at::Tensor& buffer, const at::Tensor& period, std::int64_t begin = 0);

// Checks every element. A `period` in double is an average: elements must match it within the rounding of NCCL's way of
// averaging (each rank's data divided first) over `num_ranks` ranks; all else must match exactly.
Mismatch check_periodic(const at::Tensor& buffer, const at::Tensor& period, std::int64_t begin, int num_ranks);

}  // namespace tessera
