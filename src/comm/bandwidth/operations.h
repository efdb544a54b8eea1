// What `tessera comm-test` measures: operations, sizes, formulas and the verdict, as nccl-tests defines them, and the
// data that it sends.
//
// A size S is the bytes of the larger of a rank's two buffers. All-gather, reduce-scatter and all-to-all cut it into
// one part per rank, and their `count` is that of one part, as in nccl-tests. Bandwidths are in 10^9 bytes per second.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

#include "core/error.h"

namespace tessera {

enum class TestOperation { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kReduce, kAllToAll, kSendRecv };

struct TestOperationTraits {
  TestOperation operation;
  const char* name;      // on the command line
  const char* title;     // 'Measured AllReduce BW'
  bool reduces = false;  // takes a redop
  bool has_root = false;
  bool is_cut = false;           // into one part per rank
  bool can_be_in_place = false;  // all-to-all and send/recv would overwrite what is still to be sent
  bool copies_first = false;     // our operation is in place only: out of place is a copy and the operation
};

const TestOperationTraits& traits_of(TestOperation operation);
std::vector<std::string> test_operation_names();
// Also nccl-tests' own spellings: all_reduce_perf, alltoall. Throws UsageError with the nearest right name.
TestOperation test_operation_named(std::string_view name);

// From `min_bytes` to `max_bytes`, each `step_factor` times the one before; without a factor (0 or 1) `step_bytes`
// more. Throws UsageError if min_bytes is larger than max_bytes, and above 100,000 sizes, which would take forever.
std::vector<std::int64_t> sizes_to_scan(std::int64_t min_bytes, std::int64_t max_bytes, std::int64_t step_bytes,
                                        std::int64_t step_factor);

// The buffers for one size.
struct MessageShape {
  std::int64_t bytes = 0;  // the size column: `size_bytes` rounded to whole elements and equal parts
  std::int64_t count = 0;  // the count column: elements of the whole, or of one part
  std::int64_t send_numel = 0, receive_numel = 0;
};
// At least one element, or one per rank if the size is cut: an empty message has no speed.
MessageShape shape_of(TestOperation operation, std::int64_t size_bytes, std::int64_t item_bytes, int num_ranks);
// `sizes` without those that need the same buffers as the one before: -b 1 -e 3 -i 1 is one row of floats.
std::vector<std::int64_t> without_repeats(const std::vector<std::int64_t>& sizes, TestOperation operation,
                                          std::int64_t item_bytes, int num_ranks);

// What part of the data crosses the busiest link: 2(n-1)/n for all-reduce, (n-1)/n for the cut operations, 1 for the
// others; 0 with one rank, which has no link (nccl-tests says 1 there for the last three).
double bus_factor(TestOperation operation, int num_ranks);
double algorithm_bandwidth(std::int64_t bytes, double seconds);

// Bytes of memory that `num_ranks` ranks need on one host or GPU, and the largest -e that `available` allows.
struct MemoryNeed {
  double buffers_per_size = 2;  // send and receive buffer, in units of S
  int num_ranks = 1;

  static constexpr std::int64_t kWorkBytes = 64 << 20;  // per rank: the check's blocks, the backend's chunks
  static constexpr double kUsableShare = 0.9;           // of the free memory: the rest is for the system

  std::int64_t of(std::int64_t max_bytes) const;
  bool fits(std::int64_t max_bytes, std::int64_t available) const;
  std::int64_t largest_size(std::int64_t available) const;  // in whole MiB; 0 if nothing fits
};

// Everything that the verdict depends on; the same on all ranks.
struct BandwidthTotals {
  int num_ranks = 1;
  std::optional<double> average_bus_bandwidth;  // nothing: no iteration was timed
  std::int64_t num_wrong = 0;
};

struct BandwidthVerdict {
  ExitStatus status = ExitStatus::kOk;
  std::string message;  // empty if all is well
};

BandwidthVerdict judge(const BandwidthTotals& totals, std::optional<double> min_bus_bandwidth);

struct Mismatch {
  std::int64_t num_wrong = 0;
  std::int64_t first_index = -1;  // in the tensor that was checked
  double expected = 0, found = 0;
};

// Test data for which the result of every collective is known and exact in each of the six types.
//
// Rank r's element i in round `seed` is a small whole number from a hash of (seed, r, i mod 65521): small enough that
// the sum over all ranks is at most 255, which uint8 and bfloat16 still hold exactly. The period is a prime, so that
// no part, chunk or page boundary falls on it: data that lands in the wrong place is detected.
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
