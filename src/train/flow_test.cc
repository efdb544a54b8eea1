#include "train/flow.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tessera
