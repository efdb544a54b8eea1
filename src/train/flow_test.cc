#include "train/flow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace tessera {

namespace {

std::string refusal(const FlowOptions& options) {
  try {
    Flow flow(options, 30);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Flow, RefusesIntervalsThatAreNone) {
  FlowOptions options;
  options.logging_steps = 0;
  EXPECT_EQ(refusal(options),
            "logging_steps is 0: expected a whole number from 1 on, or a fraction of the run between 0 and 1");
  options.logging_steps = 1.5;
  EXPECT_NE(refusal(options), "");
  options.logging_steps = -1;
  EXPECT_NE(refusal(options), "");
  options.logging = Interval::kNo;  // then it is not read
  EXPECT_EQ(refusal(options), "");
  options.saving = Interval::kSteps;
  options.save_steps = 2.5;
  EXPECT_NE(refusal(options), "");
}

TEST(Flow, AResumedRunDoesNotLogTheStepThatItResumesFrom) {
  FlowOptions options;
  options.logging = Interval::kEpoch;
  Flow flow(options, 30, 10);
  EXPECT_FALSE(flow.after_epoch(10, 1.0).log);
  EXPECT_TRUE(flow.after_epoch(20, 2.0).log);
  EXPECT_FALSE(flow.after_epoch(20, 2.0).log);
}

TEST(Flow, AShortRunLogsTenTimesUnlessSomebodyChoseTheSteps) {
  FlowOptions options;
  EXPECT_EQ(with_short_runs_logged(options, 93).logging_steps, 500);
  options.logs_short_runs = true;
  for (const auto& [total, expected] :
       {std::pair<std::int64_t, double>{1, 1}, {9, 1}, {93, 9}, {4999, 499}, {5000, 500}, {100'000, 500}}) {
    EXPECT_EQ(with_short_runs_logged(options, total).logging_steps, expected) << total;
  }
  EXPECT_EQ(with_short_runs_logged(options, 93).eval_steps, 500);  // as if nothing had been decided
}

TEST(BestModel, NamesAndDirections) {
  EXPECT_EQ(BestModel("f1").metric(), "eval_f1");
  EXPECT_TRUE(BestModel("f1").greater_is_better());
  EXPECT_EQ(BestModel("eval_loss").metric(), "eval_loss");
  EXPECT_FALSE(BestModel("eval_loss").greater_is_better());
  EXPECT_FALSE(BestModel("f1", false).greater_is_better());
}

TEST(BestModel, IsNeverOneThatIsNoNumber) {
  BestModel best("loss");
  EXPECT_FALSE(best.add(NAN, 10));
  EXPECT_EQ(best.best_step(), std::nullopt);
  EXPECT_TRUE(best.add(3, 20));
  EXPECT_FALSE(best.add(3, 30));
  EXPECT_FALSE(best.add(NAN, 40));
  EXPECT_TRUE(best.add(2.5, 50));
  EXPECT_EQ(best.best_value(), 2.5);
  EXPECT_EQ(best.best_step(), 50);
}

TEST(BestModel, AMissingMetricIsNamedWithThoseThatThereAre) {
  const BestModel best("f1");
  EXPECT_EQ(best.value_in({{"eval_f1", 0.5}}), 0.5);
  try {
    best.value_in({{"eval_loss", 1.0}, {"eval_runtime", 2.0}});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "metric_for_best_model is eval_f1, which the evaluation does not give: choose one of eval_loss, eval_runtime");
  }
}

TEST(BestModel, GoesOnAfterAResume) {
  BestModel best("loss");
  best.restore(2.0, 30);
  EXPECT_FALSE(best.add(2.5, 40));
  EXPECT_EQ(best.best_step(), 30);
}

TEST(EarlyStopping, CountsOnAfterAResume) {
  BestModel best("loss");
  best.restore(2.0, 30);
  EarlyStopping stopping(3);
  stopping.restore(1);
  EXPECT_FALSE(stopping.should_stop(2.1, best));
  EXPECT_EQ(stopping.num_without_gain(), 2);
  EXPECT_TRUE(stopping.should_stop(2.1, best));
}

TEST(EarlyStopping, RefusesWhatMakesNoSense) {
  EXPECT_THROW(EarlyStopping(0), UsageError);
  EXPECT_THROW(EarlyStopping(1, -0.5), UsageError);
  EXPECT_THROW(EarlyStopping(1, NAN), UsageError);
}

}  // namespace

}  // namespace tessera
