#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

constexpr std::int64_t kBlock = kBlockNumel;

// Three units of 8 blocks each and a root of 4.
std::vector<PlannedUnit> units() {
  const auto unit = [](const std::string& name, std::int64_t num_blocks) {
    return PlannedUnit{name, {{name + ".weight", {num_blocks, kBlock}, ParameterGroup::kDecaying}}};
  };
  return {unit("a", 8), unit("b", 8), unit("c", 8), unit("root", 4)};
}

PlannedModel model() {
  PlannedModel made;
  made.units = units();
  return made;
}

MemoryPlanOptions options_of(const std::string& strategy, int num_ranks) {
  MemoryPlanOptions options;
  options.spread.strategy = strategy;
  options.types = {at::kBFloat16, at::kBFloat16, false};
  options.num_ranks = num_ranks;
  return options;
}

std::int64_t peak_in_blocks(const MemoryPlanOptions& options) {
  return plan_memory(units(), nullptr, options).peak.total() / kBlock;
}

// Without activations: resident state and units in flight, worked out by hand. A block is 2 in bf16, 4 in float32, and
// 2 in what a master has more than its parameter.
TEST(MemoryPlan, IsStateAndUnitsInFlight) {
  const std::int64_t whole = 28;
  EXPECT_EQ(plan_memory(units(), nullptr, options_of("ddp", 4)).resident.total() / kBlock, whole * (2 + 2 + 8));
  // ... and all gradients in bf16 (the sums of squares are less than a block).
  EXPECT_EQ(peak_in_blocks(options_of("ddp", 4)), whole * (2 + 2 + 8 + 2));
  const std::int64_t shard = whole / 4;
  EXPECT_EQ(plan_memory(units(), nullptr, options_of("full_shard", 4)).resident.total() / kBlock, shard * (2 + 2 + 8));
  // In unit b's backward: the root, b and a, all whole; the flat gradients of c (being reduced) and b; c's shard of it.
  MemoryPlanOptions full = options_of("full_shard", 4);
  const MemoryPlan plan = plan_memory(units(), nullptr, full);
  EXPECT_EQ(plan.peak_moment, "backward of b");
  EXPECT_EQ(plan.peak.in_flight / kBlock, (4 + 8 + 8) * 2 + (8 + 8) * 2);
  EXPECT_EQ(plan.peak.gradients / kBlock, 2 * 2);
  EXPECT_EQ(peak_in_blocks(full), shard * (2 + 2 + 8) + (4 + 8 + 8) * 2 + (8 + 8) * 2 + 2 * 2);
  full.reductions_take_time = false;
  EXPECT_EQ(peak_in_blocks(full), shard * (2 + 2 + 8) + (4 + 8 + 8) * 2 + 8 * 2 + 2 * 2 + 2 * 2) << "b's, reduced";
}

TEST(MemoryPlan, PrefetchingCostsAUnit) {
  MemoryPlanOptions options = options_of("full_shard", 4);
  const std::int64_t with = peak_in_blocks(options);
  options.spread.backward_prefetch = BackwardPrefetch::kNone;
  options.spread.forward_prefetch = false;
  EXPECT_LE(peak_in_blocks(options), with);
}

TEST(MemoryPlan, HybridSplitsOverTheNode) {
  MemoryPlanOptions options = options_of("hybrid_shard", 8);
  options.ranks_per_node = 2;
  EXPECT_EQ(options.num_shards(), 2);
  EXPECT_EQ(plan_memory(units(), nullptr, options).resident.total() / kBlock, 14 * (2 + 2 + 8));
}

TEST(MemoryPlan, RefusesWhatCannotBe) {
  EXPECT_THROW(plan_memory(units(), nullptr, options_of("ddp", 0)), UsageError);
  EXPECT_THROW(plan_memory(units(), nullptr, options_of("single", 2)), UsageError);
  MemoryPlanOptions options = options_of("ddp", 4);
  options.ranks_per_node = 3;
  EXPECT_THROW(plan_memory(units(), nullptr, options), UsageError);
  options = options_of("ddp", 4);
  options.num_micro_steps = 0;
  EXPECT_THROW(plan_memory(units(), nullptr, options), UsageError);
}

TEST(MemoryAdvice, KeepsAsManyUnitsOnTheDeviceAsFit) {
  PlanRequest request;
  request.options = options_of("zero2", 1);
  request.options.spread.offload_optimizer = true;
  const auto peak_with = [&](std::int64_t number) {
    PlanRequest changed = request;
    changed.options.spread.units_on_device = number;
    return plan_memory(model(), changed).peak.total();
  };
  // The root's masters and moments are 4 blocks of 10, a unit's 8.
  EXPECT_EQ(plan_memory(model(), request).resident.total() / kBlock, 28 * 2);
  request.options.spread.units_on_device = 1;
  EXPECT_EQ(plan_memory(model(), request).resident.total() / kBlock, 28 * 2 + 4 * 10);
  request.options.spread.units_on_device = 2;
  EXPECT_EQ(plan_memory(model(), request).resident.total() / kBlock, 28 * 2 + (4 + 8) * 10);
  for (std::int64_t number = 0; number <= 4; ++number) {
    EXPECT_EQ(most_units_on_device(model(), request, peak_with(number)), number);
  }
  EXPECT_EQ(most_units_on_device(model(), request, std::int64_t{1} << 60), 4);
  EXPECT_EQ(most_units_on_device(model(), request, peak_with(0) - 1), std::nullopt);
}

TEST(MemoryAdvice, NamesTheGentlestChangesThatFit) {
  PlanRequest request;
  request.options = options_of("ddp", 4);
  const std::int64_t now = plan_memory(model(), request).peak.total();
  const std::vector<MemoryAdvice> advice = advise(model(), request, now / 2);
  ASSERT_FALSE(advice.empty());
  EXPECT_EQ(advice.front().change, "--strategy zero1");
  for (const MemoryAdvice& one : advice) EXPECT_LE(one.plan.peak.total(), now / 2) << one.change;
  EXPECT_TRUE(advise(model(), request, 1).empty());
}

}  // namespace
}  // namespace tessera
