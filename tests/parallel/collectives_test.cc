// Which collectives each strategy calls: number, order and bytes, from the flight recorder. docs/collectives.md shows
// them and must agree.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "comm/flight_recorder.h"
#include "core/file.h"
#include "core/text.h"
#include "model/run_modes.h"
#include "parallel/collectives_page.h"
#include "parallel/recorded_step.h"
#include "parallel/unit_schedule.h"

namespace tessera {
namespace {

// Plays a step by the schedule alone, for rows that split parameters: the collectives that its verbs stand for.
class ScheduledStep : private UnitVerbs {
 public:
  explicit ScheduledStep(const Step& step)
      : row_(placement_of(step.strategy)),
        schedule_(SpreadOptions{.strategy = step.strategy,
                                .forward_prefetch = step.forward_prefetch,
                                .backward_prefetch = step.backward_prefetch},
                  row_, row_.reduced_over() == Over::kNode, static_cast<std::size_t>(step.num_blocks) + 1, *this) {
    for (int i = 1; i <= step.num_micro_steps; ++i) {
      schedule_.begin_pass();
      for (std::size_t unit = 0; unit < schedule_.root(); ++unit) {
        schedule_.begin_forward(unit);
        schedule_.end_forward(unit, /*has_backward=*/true);
      }
      schedule_.begin_backward(/*last_micro_step=*/i == step.num_micro_steps);
      for (std::size_t unit = schedule_.root(); unit-- > 0;) {
        schedule_.begin_unit_backward(unit);
        schedule_.gradient_is_complete(unit);
        schedule_.end_unit_backward(unit);
      }
      schedule_.end_backward();
    }
    schedule_.finish_reductions();
  }

  const std::vector<std::string>& calls() const { return calls_; }

 private:
  void begin_gather(std::size_t unit) override {
    if (whole_.insert(unit).second) note(has_copy_.contains(unit) ? "gather in the node" : "gather", unit);
  }
  void wait_gather(std::size_t) override {}
  void release(std::size_t unit) override { whole_.erase(unit); }
  void release_until_backward(std::size_t unit) override {
    if (row_.keeps_second_copy()) has_copy_.insert(unit);
    whole_.erase(unit);
  }
  void begin_reduce(std::size_t unit, bool) override {
    wait_reduce(unit);  // of the previous micro-step
    note("reduce", unit);
    if (row_.reduced_over() == Over::kNode) goes_on_.insert(unit);
  }
  void continue_reduce(std::size_t unit) override {
    if (goes_on_.erase(unit) > 0) note("add across nodes", unit);
  }
  void wait_reduce(std::size_t unit) override { continue_reduce(unit); }
  void note(const std::string& what, std::size_t unit) {
    calls_.push_back(fmt::format("{} {}", what, unit == schedule_.root() ? "root" : fmt::format("block_{}", unit)));
  }

  Placement row_;
  std::vector<std::string> calls_;
  std::set<std::size_t> whole_, has_copy_, goes_on_;
  UnitSchedule schedule_;
};

TEST(Collectives, TheEngineFollowsTheSchedule) {
  for (const std::string strategy : {"full_shard", "zero3", "shard_grad_op", "hybrid_shard", "zero3_hpz"}) {
    for (const BackwardPrefetch prefetch : {BackwardPrefetch::kPre, BackwardPrefetch::kPost, BackwardPrefetch::kNone}) {
      for (const int num_micro_steps : {1, 2}) {
        Step step{.strategy = strategy, .num_ranks = 4, .ranks_per_node = 2, .num_micro_steps = num_micro_steps};
        step.num_blocks = 3;
        step.forward_prefetch = prefetch != BackwardPrefetch::kNone;
        step.backward_prefetch = prefetch;
        std::vector<std::string> recorded;
        for (const Call& call : record(step)) {
          if (call.unit != "gradient norm") recorded.push_back(call.name());
        }
        EXPECT_EQ(recorded, ScheduledStep(step).calls()) << strategy << ", " << num_micro_steps << " micro-steps";
      }
    }
  }
}

TEST(Collectives, FullShardGathersTwiceAndReducesOnce) {
  for (const std::string strategy : {"full_shard", "zero3"}) {
    EXPECT_EQ(in_order(record({.strategy = strategy})),
              "gather root; gather block_0; gather block_1; "  // block_1, the last, stays for backward
              "gather block_0; reduce block_1; reduce block_0; reduce root; gather gradient norm");
  }
}

TEST(Collectives, ShardGradOpGathersOnceAndReducesOnce) {
  EXPECT_EQ(in_order(record({.strategy = "shard_grad_op"})),
            "gather root; gather block_0; gather block_1; "
            "reduce block_1; reduce block_0; reduce root; gather gradient norm");
}

TEST(Collectives, Zero1And2ReduceAndHandTheUpdatedPartsRound) {
  for (const std::string strategy : {"zero1", "zero2"}) {
    EXPECT_EQ(in_order(record({.strategy = strategy})),
              "reduce block_1; reduce block_0; reduce root; gather gradient norm; "
              "gather root; gather block_0; gather block_1");
  }
}

TEST(Collectives, DdpReducesAndHandsTheSumsRound) {
  for (const std::string strategy : {"ddp", "zero0", "no_shard"}) {
    EXPECT_EQ(in_order(record({.strategy = strategy})),
              "reduce block_1; gather block_1; reduce block_0; gather block_0; reduce root; gather root");
  }
}

TEST(Collectives, HybridAddsShardsAcrossNodesWhileTheNextUnitReduces) {
  EXPECT_EQ(in_order(record({.strategy = "hybrid_shard", .num_ranks = 4, .ranks_per_node = 2})),
            "gather root; gather block_0; gather block_1; gather block_0; reduce block_1; reduce block_0; "
            "add across nodes block_1; reduce root; add across nodes block_0; add across nodes root; "
            "gather gradient norm");
}

TEST(Collectives, AHybridThatKeepsItsUnitsGathersEachOnce) {
  EXPECT_EQ(in_order(record({.strategy = "hybrid_shard_zero2", .num_ranks = 4, .ranks_per_node = 2})),
            "gather root; gather block_0; gather block_1; reduce block_1; reduce block_0; "
            "add across nodes block_1; reduce root; add across nodes block_0; add across nodes root; "
            "gather gradient norm");
}

// ZeRO++'s second copy: forward gathers over all ranks, backward and later micro-steps within the node.
TEST(Collectives, ASecondCopyKeepsBackwardsGathersInTheNode) {
  EXPECT_EQ(in_order(record({.strategy = "zero3_hpz", .num_ranks = 4, .ranks_per_node = 2})),
            "gather root; gather block_0; gather block_1; gather in the node block_0; reduce block_1; reduce block_0; "
            "reduce root; gather gradient norm");
  std::map<std::string, int> calls;
  for (const Call& call :
       record({.strategy = "zero3_hpz", .num_ranks = 4, .ranks_per_node = 2, .num_micro_steps = 3})) {
    ++calls[call.name()];
  }
  EXPECT_EQ(calls["gather block_0"], 1);
  EXPECT_EQ(calls["gather in the node block_0"], 5) << "backward, and two more forward and backward passes";
}

// One node is the world: no second copy. Nodes of one rank keep what they gathered.
TEST(Collectives, ASecondCopyIsZero3OnOneNodeAndShardGradOpOnNodesOfOneRank) {
  EXPECT_EQ(in_order(record({.strategy = "zero3_hpz", .num_ranks = 2, .ranks_per_node = 2})),
            in_order(record({.strategy = "zero3"})));
  EXPECT_EQ(in_order(record({.strategy = "zero3_hpz", .num_ranks = 2, .ranks_per_node = 1})),
            in_order(record({.strategy = "shard_grad_op"})));
}

// One node: nothing to add. Nodes of one rank: nothing to gather.
TEST(Collectives, HybridIsFullShardOnOneNodeAndOnlyAddsWhereNodesHaveOneRank) {
  EXPECT_EQ(in_order(record({.strategy = "hybrid_shard", .num_ranks = 2, .ranks_per_node = 2})),
            in_order(record({.strategy = "full_shard"})));
  EXPECT_EQ(in_order(record({.strategy = "hybrid_shard", .num_ranks = 2, .ranks_per_node = 1})),
            "add across nodes block_1; add across nodes block_0; add across nodes root");
}

TEST(Collectives, WholeGradientsAreReducedInTheLastMicroStepOnly) {
  for (const std::string strategy : {"ddp", "zero1"}) {
    const std::string one = in_order(record({.strategy = strategy}));
    for (const int num_micro_steps : {2, 4}) {
      EXPECT_EQ(in_order(record({.strategy = strategy, .num_micro_steps = num_micro_steps})), one) << strategy;
    }
  }
}

TEST(Collectives, SplitGradientsAreReducedInEveryMicroStep) {
  EXPECT_EQ(in_order(record({.strategy = "zero2", .num_micro_steps = 2})),
            "reduce block_1; reduce block_0; reduce root; reduce block_1; reduce block_0; reduce root; "
            "gather gradient norm; gather root; gather block_0; gather block_1");
}

// Four micro-steps call four times what one calls, except for the norm and the root, which stays until the update.
TEST(Collectives, SplitBlocksAreGatheredInEveryMicroStep) {
  for (const std::string strategy : {"shard_grad_op", "full_shard", "hybrid_shard"}) {
    const auto step_of = [&](int num_micro_steps) {
      return record({.strategy = strategy, .num_ranks = 4, .ranks_per_node = 2, .num_micro_steps = num_micro_steps});
    };
    std::map<std::string, int> one, four;
    for (const Call& call : step_of(1)) ++one[call.name()];
    for (const Call& call : step_of(4)) ++four[call.name()];
    for (auto& [name, count] : one) count *= name == "gather gradient norm" || name == "gather root" ? 1 : 4;
    EXPECT_EQ(four, one) << strategy;
  }
}

TEST(Collectives, PrefetchChangesWhenGathersBeginAndNotWhich) {
  const Step step{.strategy = "full_shard", .num_blocks = 3};
  const auto record_with = [&](bool forward, BackwardPrefetch backward) {
    Step other = step;
    other.forward_prefetch = forward;
    other.backward_prefetch = backward;
    return in_order(record(other));
  };
  const std::string forward = "gather root; gather block_0; gather block_1; gather block_2; ";
  const std::string end = "reduce block_0; reduce root; gather gradient norm";
  // With 'pre', block_1 is gathered while block_2 computes its gradient; with 'post', afterwards.
  EXPECT_EQ(record_with(true, BackwardPrefetch::kPre),
            forward + "gather block_1; reduce block_2; gather block_0; reduce block_1; " + end);
  EXPECT_EQ(record_with(true, BackwardPrefetch::kPost),
            forward + "reduce block_2; gather block_1; reduce block_1; gather block_0; " + end);
  EXPECT_EQ(record_with(false, BackwardPrefetch::kNone),
            forward + "reduce block_2; gather block_1; reduce block_1; gather block_0; " + end);
}

TEST(Collectives, CheckpointingCallsNoOthers) {
  for (const std::string strategy : {"ddp", "zero2", "shard_grad_op", "full_shard"}) {
    const Step plain{.strategy = strategy, .num_blocks = 3};
    Step checkpointed = plain;
    checkpointed.checkpointed = true;
    std::map<std::string, int> expected, found;
    for (const Call& call : record(plain)) ++expected[call.name()];
    for (const Call& call : record(checkpointed)) ++found[call.name()];
    EXPECT_EQ(found, expected) << strategy;
  }
}

// If parameters stay whole and their masters are on the host, the updated parts are gathered when the next step needs
// them; everything else keeps its order.
TEST(Collectives, OffloadCallsNoOthers) {
  for (const std::string strategy : {"zero1", "zero2"}) {
    EXPECT_EQ(in_order(record({.strategy = strategy, .offload_optimizer = true})),
              "gather root; gather block_0; gather block_1; "
              "reduce block_1; reduce block_0; reduce root; gather gradient norm");
  }
  for (const std::string strategy : {"ddp", "shard_grad_op", "full_shard"}) {
    Step step{.strategy = strategy};
    const std::string expected = in_order(record(step));
    step.offload_optimizer = true;
    EXPECT_EQ(in_order(record(step)), expected) << strategy;
    step.offload_parameters = strategy != "ddp";
    EXPECT_EQ(in_order(record(step)), expected) << strategy;
  }
}

// A reduction is waited for when the next one begins: its unit is updated then, and its parts are gathered during the
// next.
TEST(Collectives, UpdatesDuringBackwardHandPartsRoundBesideReductions) {
  EXPECT_EQ(in_order(record({.strategy = "zero2", .updates_during_backward = true})),
            "reduce block_1; gather block_1; reduce block_0; gather block_0; reduce root; gather root; "
            "gather gradient norm");
  for (const std::string strategy : {"ddp", "full_shard"}) {
    EXPECT_EQ(in_order(record({.strategy = strategy, .updates_during_backward = true})),
              in_order(record({.strategy = strategy})));
  }
}

TEST(Collectives, AnEvaluationGathersOnceAndReducesNothing) {
  const std::map<std::string, std::string> expected = {{"ddp", ""},
                                                       {"zero2", ""},
                                                       {"shard_grad_op", "gather root; gather block_0; gather block_1"},
                                                       {"full_shard", "gather root; gather block_0; gather block_1"}};
  for (const auto& [strategy, calls] : expected) {
    EXPECT_EQ(in_order(record({.strategy = strategy, .is_evaluation = true})), calls) << strategy;
  }
}

TEST(Collectives, OneRankCallsNone) {
  for (const std::string strategy : {"single", "ddp", "zero2", "full_shard"}) {
    EXPECT_EQ(in_order(record({.strategy = strategy, .num_ranks = 1})), "") << strategy;
  }
}

// Every collective's bytes, from the layout of its unit: whole units in the type in which they travel.
TEST(Collectives, CarryWholeUnitsAndNoByteMore) {
  const std::vector<std::pair<at::ScalarType, at::ScalarType>> types = {
      {at::kFloat, at::kFloat}, {at::kBFloat16, at::kBFloat16}, {at::kBFloat16, at::kFloat}, {at::kFloat, at::kHalf}};
  for (const std::string& strategy : strategy_names()) {
    if (placement_of(strategy).is_for_one_rank) continue;
    for (const auto& [compute, reduce] : types) {
      for (const int num_ranks : {2, 3, 4}) {
        const bool is_hybrid = placement_of(strategy).needs_equal_nodes();
        if (is_hybrid && num_ranks == 3) continue;
        const Step step{.strategy = strategy,
                        .num_ranks = num_ranks,
                        .ranks_per_node = is_hybrid ? num_ranks / 2 : 0,
                        .num_micro_steps = 1,
                        .compute = compute,
                        .reduce = reduce};
        for (const Call& call : record(step)) {
          EXPECT_EQ(call.bytes, expected_bytes(step, call)) << strategy << " on " << num_ranks << ": " << call.name();
        }
      }
    }
  }
}

// To update the page, copy the file that the failure names.
TEST(CollectivesPage, ShowsWhatTheFlightRecorderShows) {
  const std::string page = collectives_page();
  if (read_file(COLLECTIVES_PAGE) == page) return;
  const std::string written = testing::TempDir() + "collectives.md";
  write_file_atomically(written, page);
  FAIL() << "docs/collectives.md should read as " << written << ":\n" << page;
}

}  // namespace
}  // namespace tessera
