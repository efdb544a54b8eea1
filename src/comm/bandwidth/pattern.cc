#include "comm/bandwidth/pattern.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include <algorithm>

namespace tessera {
namespace {

// The largest uint8; bfloat16 holds every whole number up to 256.
constexpr int kLargestSum = 255;
constexpr int kLargestValue = 15;
// Periods processed together: 1 Mi elements, so that the temporaries stay small.
constexpr std::int64_t kPeriodsPerBlock = 16;

std::uint32_t mix(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

// The period that begins with its element `begin`.
at::Tensor rotated(const at::Tensor& period, std::int64_t begin) {
  const std::int64_t phase = begin % TestPattern::kPeriod;
  if (phase == 0) return period;
  return at::cat({period.narrow(0, phase, TestPattern::kPeriod - phase), period.narrow(0, 0, phase)});
}

// Calls visit(elements, expected, first index) for blocks of whole periods, (k, kPeriod) each, and for the rest.
template <typename Visit>
void visit_blocks(const at::Tensor& buffer, const at::Tensor& period, const Visit& visit) {
  constexpr std::int64_t kPeriod = TestPattern::kPeriod;
  const std::int64_t num_periods = buffer.numel() / kPeriod, rest = buffer.numel() % kPeriod;
  for (std::int64_t first = 0; first < num_periods; first += kPeriodsPerBlock) {
    const std::int64_t rows = std::min(kPeriodsPerBlock, num_periods - first);
    visit(buffer.narrow(0, first * kPeriod, rows * kPeriod).view({rows, kPeriod}), period, first * kPeriod);
  }
  if (rest > 0) visit(buffer.narrow(0, num_periods * kPeriod, rest), period.narrow(0, 0, rest), num_periods * kPeriod);
}

double rounding_of(at::ScalarType type) {
  if (type == at::kBFloat16) return 1.0 / 256;
  return type == at::kHalf ? 1.0 / 2048 : 1.0 / (1 << 24);
}

}  // namespace

TestPattern::TestPattern(int num_ranks, at::ScalarType type, at::Device device, int seed)
    : num_ranks_(num_ranks),
      type_(type),
      device_(device),
      seed_(static_cast<std::uint32_t>(seed)),
      largest_(std::clamp(kLargestSum / num_ranks, 1, kLargestValue)) {}

int TestPattern::value(int rank, std::int64_t index) const {
  const std::int64_t i = index % kPeriod;
  // Above 255 ranks only 255 of them hold more than 0: different ones for every element.
  if (num_ranks_ > kLargestSum && (rank + i) % num_ranks_ >= kLargestSum) return 0;
  const std::uint32_t key = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(rank) * 0x9e3779b9U;
  return static_cast<int>(mix(key ^ mix(seed_ + 1)) % static_cast<std::uint32_t>(largest_ + 1));
}

at::Tensor TestPattern::table(const std::vector<double>& values, at::ScalarType type) const {
  at::Tensor host = at::empty({kPeriod}, at::TensorOptions().dtype(at::kDouble));
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<double>());
  return host.to(at::TensorOptions().dtype(type).device(device_));
}

at::Tensor TestPattern::of_rank(int rank) const {
  std::vector<double> values(kPeriod);
  for (std::int64_t i = 0; i < kPeriod; ++i) values[static_cast<std::size_t>(i)] = value(rank, i);
  return table(values, type_);
}

at::Tensor TestPattern::reduced(c10d::ReduceOp::RedOpType op) const {
  using c10d::ReduceOp;
  std::vector<double> values(kPeriod);
  for (std::int64_t i = 0; i < kPeriod; ++i) {
    int result = value(0, i);
    for (int rank = 1; rank < num_ranks_; ++rank) {
      const int next = value(rank, i);
      result = op == ReduceOp::MAX   ? std::max(result, next)
               : op == ReduceOp::MIN ? std::min(result, next)
                                     : result + next;
    }
    values[static_cast<std::size_t>(i)] = op == ReduceOp::AVG ? static_cast<double>(result) / num_ranks_ : result;
  }
  return table(values, op == ReduceOp::AVG ? at::kDouble : type_);
}

void fill_periodic(const at::Tensor& buffer, const at::Tensor& period, std::int64_t begin) {
  visit_blocks(buffer, rotated(period, begin),
               [](const at::Tensor& block, const at::Tensor& expected, std::int64_t) { block.copy_(expected); });
}

Mismatch check_periodic(const at::Tensor& buffer, const at::Tensor& period, std::int64_t begin, int num_ranks) {
  const bool is_average = period.scalar_type() == at::kDouble;
  // Dividing first rounds each term once and each partial sum once; no partial sum exceeds the largest value.
  const double tolerance = (num_ranks + 1) * rounding_of(buffer.scalar_type()) * kLargestValue;
  Mismatch result;
  visit_blocks(buffer, rotated(period, begin),
               [&](const at::Tensor& block, const at::Tensor& expected, std::int64_t first_index) {
                 const at::Tensor wrong =
                     is_average ? at::logical_not(at::le(at::abs(at::sub(block, expected)), tolerance))  // NaN too
                                : at::ne(block, expected);
                 const std::int64_t num_wrong = at::sum(wrong).item<std::int64_t>();
                 if (num_wrong > 0 && result.num_wrong == 0) {
                   const std::int64_t at = at::nonzero(wrong.flatten()).select(0, 0).item<std::int64_t>();
                   result.first_index = first_index + at;
                   result.found = block.flatten().select(0, at).item<double>();
                   result.expected = expected.select(0, at % TestPattern::kPeriod).item<double>();
                 }
                 result.num_wrong += num_wrong;
               });
  return result;
}

}  // namespace tessera
