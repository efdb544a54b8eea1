// What must not change the losses: the name of a row, prefetching, nodes, how an optimizer is split. Uses the model
// that is hardest to spread; job_parity_test.cc covers the others and the whole table.
#include <gtest/gtest.h>

#include "parallel/jobs.h"

namespace tessera {
namespace {

Trained trained(const ThreadRanks& ranks, const Training& how) {
  return train_on_threads(ranks, odd_job().make, how);
}

Training in_row(const std::string& strategy) {
  Training how = odd_job().how;
  how.row.strategy = strategy;
  return how;
}

TEST(Parity, EveryNameOfTheTableGivesTheSameBits) {
  const Trained expected = trained({3}, in_row("ddp"));
  expect_learnt(expected, "ddp");
  for (const std::string& strategy : strategy_names()) {
    if (strategy != "single") expect_same_bits(trained({3}, in_row(strategy)), expected, strategy);
  }
}

TEST(Parity, NodesOfOneRankHaveNothingToSplitAndEverythingToAddAcross) {
  const Trained expected = trained({4, 1}, in_row("ddp"));
  for (const Row& row : {Row{"hybrid_shard"}, Row{"hybrid_shard", true, true}, Row{"zero2"}}) {
    Training how = in_row(row.strategy);
    how.row = row;
    expect_same_bits(trained({4, 1}, how), expected, row.name());
  }
}

TEST(Parity, RowsThatUseNodesGiveTheBitsOfFlatOnes) {
  for (const int num_micro_steps : {1, 3}) {
    // Rows with split gradients add micro-steps in another order than those with whole ones.
    Training flat = in_row("zero2");
    flat.num_micro_steps = num_micro_steps;
    const Trained expected = trained({4, 2}, flat);
    for (const std::string& strategy : rows_that_use_nodes()) {
      for (const Row& row : {Row{strategy}, Row{strategy, true, false}, Row{strategy, true, true}}) {
        for (const BackwardPrefetch prefetch : {BackwardPrefetch::kPre, BackwardPrefetch::kNone}) {
          Training how = flat;
          how.row = row;
          how.backward_prefetch = prefetch;
          expect_same_bits(trained({4, 2}, how), expected, row.name());
        }
      }
    }
  }
}

TEST(Parity, ShardsGetWhatTheWholeGetsFromEveryOptimizer) {
  for (const OptimizerKind* kind : optimizers()) {
    const OptimizerChoice optimizer{kind, {.weight_decay = 0.1, .momentum = 0.9, .nesterov = true}};
    Training how = in_row("ddp");
    how.optimizer = optimizer;
    const Trained expected = trained({3}, how);
    expect_learnt(expected, kind->name);
    for (const std::string strategy : {"zero1", "full_shard"}) {
      how.row.strategy = strategy;
      expect_same_bits(trained({3}, how), expected, strategy);
    }
  }
}

TEST(Parity, PrefetchingChangesNothingButTime) {
  Training how = in_row("full_shard");
  const Trained expected = trained({3}, how);
  for (const auto backward : {BackwardPrefetch::kNone, BackwardPrefetch::kPost}) {
    how.forward_prefetch = false;
    how.backward_prefetch = backward;
    expect_same_bits(trained({3}, how), expected, "without");
  }
}

TEST(Parity, ClippingActsAlikeEverywhere) {
  Training how = in_row("ddp");
  how.max_norm = 0.1;
  const Trained clipped = trained({2}, how);
  EXPECT_GT(clipped.norms.front(), 0.1) << "it has something to clip";
  how.row.strategy = "full_shard";
  expect_same_bits(trained({2}, how), clipped, "clipped");
  how.max_norm = 0;
  EXPECT_NE(trained({2}, how).losses, clipped.losses);
}

}  // namespace
}  // namespace tessera
