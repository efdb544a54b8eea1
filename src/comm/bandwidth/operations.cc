#include "comm/bandwidth/operations.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

// In the order of the enumerators.
constexpr std::array kTraits = {
    TestOperationTraits{.operation = TestOperation::kAllReduce,
                        .name = "all_reduce",
                        .title = "AllReduce",
                        .reduces = true,
                        .can_be_in_place = true,
                        .copies_first = true},
    TestOperationTraits{.operation = TestOperation::kAllGather,
                        .name = "all_gather",
                        .title = "AllGather",
                        .is_cut = true,
                        .can_be_in_place = true},
    TestOperationTraits{.operation = TestOperation::kReduceScatter,
                        .name = "reduce_scatter",
                        .title = "ReduceScatter",
                        .reduces = true,
                        .is_cut = true,
                        .can_be_in_place = true},
    TestOperationTraits{.operation = TestOperation::kBroadcast,
                        .name = "broadcast",
                        .title = "Broadcast",
                        .has_root = true,
                        .can_be_in_place = true,
                        .copies_first = true},
    TestOperationTraits{.operation = TestOperation::kReduce,
                        .name = "reduce",
                        .title = "Reduce",
                        .reduces = true,
                        .has_root = true,
                        .can_be_in_place = true,
                        .copies_first = true},
    TestOperationTraits{
        .operation = TestOperation::kAllToAll, .name = "all_to_all", .title = "AllToAll", .is_cut = true},
    TestOperationTraits{.operation = TestOperation::kSendRecv, .name = "sendrecv", .title = "SendRecv"},
};

// nccl-tests aligns the parts of cut operations to this.
constexpr std::int64_t kPartBytes = 16;
constexpr std::size_t kMaxSizes = 100'000;
constexpr std::int64_t kMiB = 1 << 20;

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

const TestOperationTraits& traits_of(TestOperation operation) {
  return kTraits[static_cast<std::size_t>(operation)];
}

std::vector<std::string> test_operation_names() {
  return texts_of(kTraits, &TestOperationTraits::name);
}

TestOperation test_operation_named(std::string_view name) {
  std::string word = lower_case(name);
  std::ranges::replace(word, '-', '_');
  if (word.ends_with("_perf")) word.resize(word.size() - 5);
  if (word == "alltoall") word = "all_to_all";
  if (word == "send_recv") word = "sendrecv";
  for (const TestOperationTraits& traits : kTraits) {
    if (word == traits.name) return traits.operation;
  }
  throw UsageError(fmt::format("no operation '{}': expected one of {}{}", name, join(test_operation_names(), ", "),
                               did_you_mean(word, test_operation_names(), "; did you mean {}?")));
}

std::vector<std::int64_t> sizes_to_scan(std::int64_t min_bytes, std::int64_t max_bytes, std::int64_t step_bytes,
                                        std::int64_t step_factor) {
  if (min_bytes > max_bytes) {
    throw UsageError(fmt::format("-b {} is larger than -e {}: the sizes go from -b up to -e; give both",
                                 format_bytes(min_bytes), format_bytes(max_bytes)));
  }
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = min_bytes; size <= max_bytes;) {
    if (sizes.size() == kMaxSizes) {
      throw UsageError(
          fmt::format("more than {} sizes from -b {} to -e {}: give a larger step (-i), or a factor (-f 2)", kMaxSizes,
                      format_bytes(min_bytes), format_bytes(max_bytes)));
    }
    sizes.push_back(size);
    const bool overflow = step_factor > 1 ? __builtin_mul_overflow(size, step_factor, &size)
                                          : __builtin_add_overflow(size, step_bytes, &size);
    if (overflow) break;
  }
  return sizes;
}

MessageShape shape_of(TestOperation operation, std::int64_t size_bytes, std::int64_t item_bytes, int num_ranks) {
  const std::int64_t whole = std::max<std::int64_t>(1, size_bytes / item_bytes);
  if (!traits_of(operation).is_cut) return {whole * item_bytes, whole, whole, whole};
  const std::int64_t unit = std::max<std::int64_t>(1, kPartBytes / item_bytes);
  // Less than one unit per rank stays unaligned: nccl-tests makes it 0 and measures nothing.
  const std::int64_t unaligned = std::max<std::int64_t>(1, whole / num_ranks);
  const std::int64_t part = unaligned < unit ? unaligned : unaligned / unit * unit;
  MessageShape shape{part * num_ranks * item_bytes, part, part * num_ranks, part * num_ranks};
  if (operation == TestOperation::kAllGather) shape.send_numel = part;
  if (operation == TestOperation::kReduceScatter) shape.receive_numel = part;
  return shape;
}

std::vector<std::int64_t> without_repeats(const std::vector<std::int64_t>& sizes, TestOperation operation,
                                          std::int64_t item_bytes, int num_ranks) {
  std::vector<std::int64_t> result;
  std::int64_t last_bytes = -1;
  for (const std::int64_t size : sizes) {
    const std::int64_t bytes = shape_of(operation, size, item_bytes, num_ranks).bytes;
    if (bytes != last_bytes) result.push_back(size);
    last_bytes = bytes;
  }
  return result;
}

double bus_factor(TestOperation operation, int num_ranks) {
  if (num_ranks <= 1) return 0;
  const double others = static_cast<double>(num_ranks - 1) / num_ranks;
  if (operation == TestOperation::kAllReduce) return 2 * others;
  return traits_of(operation).is_cut ? others : 1;
}

double algorithm_bandwidth(std::int64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0;
}

std::int64_t MemoryNeed::of(std::int64_t max_bytes) const {
  // In doubles: -e 4E times a thousand ranks does not fit in 64 bits, but must still be refused.
  const double need = num_ranks * (buffers_per_size * static_cast<double>(max_bytes) + static_cast<double>(kWorkBytes));
  return need < 9e18 ? static_cast<std::int64_t>(need) : std::int64_t{9'000'000'000'000'000'000};
}

bool MemoryNeed::fits(std::int64_t max_bytes, std::int64_t available) const {
  return static_cast<double>(of(max_bytes)) <= kUsableShare * static_cast<double>(available);
}

std::int64_t MemoryNeed::largest_size(std::int64_t available) const {
  const double share = kUsableShare * static_cast<double>(available) / num_ranks - static_cast<double>(kWorkBytes);
  if (share <= 0 || buffers_per_size <= 0) return 0;
  return static_cast<std::int64_t>(share / buffers_per_size) / kMiB * kMiB;
}

BandwidthVerdict judge(const BandwidthTotals& totals, std::optional<double> min_bus_bandwidth) {
  if (totals.num_wrong > 0) {
    return {ExitStatus::kWrongData,
            fmt::format("Wrong data: {} elements differ from the expected values", totals.num_wrong)};
  }
  if (!min_bus_bandwidth) return {};
  if (totals.num_ranks == 1) {
    return {ExitStatus::kNoBandwidth,
            "No bandwidth figure: one rank moves nothing; --min-busbw needs two ranks or more"};
  }
  if (!totals.average_bus_bandwidth) {
    return {ExitStatus::kNoBandwidth, "No bandwidth figure: no iteration was timed; --min-busbw needs -n 1 or more"};
  }
  if (*totals.average_bus_bandwidth < *min_bus_bandwidth) {
    return {ExitStatus::kLowBandwidth, fmt::format("Bandwidth below threshold: {:g} GB/s, --min-busbw asks for {:g}",
                                                   *totals.average_bus_bandwidth, *min_bus_bandwidth)};
  }
  return {};
}

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
  std::ranges::copy(values, host.mutable_data_ptr<double>());
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
