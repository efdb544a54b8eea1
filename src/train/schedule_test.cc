#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "support/train_references.h"

namespace tessera {
namespace {

std::optional<double> optional_number(const Json& row, const char* key) {
  return row.contains(key) ? std::optional<double>(row.at(key).get<double>()) : std::nullopt;
}

// The same operations in the same order give the same bits. cos, log and pow come from the C library, whose last bit
// differs between machines.
void expect_rate(const std::string& kind, double ours, double theirs) {
  const bool transcendental = kind.starts_with("cosine") || kind.starts_with("Warmup") || kind == "polynomial";
  if (transcendental) {
    EXPECT_NEAR(ours, theirs, 4e-16 * std::max(1e-3, std::abs(theirs)));
  } else {
    EXPECT_EQ(ours, theirs);
  }
}

TEST(Schedule, EqualsTransformersForEveryUpdate) {
  int num_cases = 0;
  for (const Json& row : train_reference("trainer_4_50.json", "schedules")) {
    ScheduleOptions options;
    options.kind = row.at("kind");
    options.learning_rate = row.at("learning_rate");
    options.total_steps = row.at("total_steps");
    options.warmup_steps = row.value("warmup_steps", 0);
    options.warmup_ratio = row.value("warmup_ratio", 0.0);
    options.num_cycles = optional_number(row, "num_cycles");
    options.power = optional_number(row, "power");
    options.lr_end = optional_number(row, "lr_end");
    options.min_lr = optional_number(row, "min_lr");
    options.min_lr_rate = optional_number(row, "min_lr_rate");
    SCOPED_TRACE(row.dump());
    const Schedule schedule(options);
    const auto& used = row.at("used");
    ASSERT_EQ(used.size(), static_cast<std::size_t>(options.total_steps));
    for (std::size_t i = 0; i < used.size(); ++i) {
      expect_rate(options.kind, schedule.at(static_cast<std::int64_t>(i)), used[i]);
    }
    // For the last update that release logs the rate after it.
    EXPECT_EQ(row.at("logged"), "after");
    expect_rate(options.kind, schedule.at(options.total_steps), row.at("last"));
    ++num_cases;
  }
  EXPECT_GE(num_cases, 90);
}

TEST(Schedule, LaterReleasesLogTheRateOfTheStep) {
  for (const Json& row : train_reference("trainer_late.json", "logged")) {
    const std::string kind = row.at("kind");
    if (kind.starts_with("constant")) continue;  // both are the same there
    EXPECT_EQ(row.at("logged"), "used") << kind;
  }
}

TEST(Schedule, EqualsDeepSpeedsWarmups) {
  for (const Json& row : train_reference("deepspeed.json", "warmup")) {
    ScheduleOptions options;
    options.kind = row.at("kind");
    options.learning_rate = row.at("warmup_max_lr");
    options.warmup_min_lr = row.at("warmup_min_lr");
    options.warmup_steps = row.at("warmup_num_steps");
    options.total_steps = row.at("total_num_steps");
    options.warmup_shape = row.at("warmup_type") == "log" ? WarmupShape::kLog : WarmupShape::kLinear;
    SCOPED_TRACE(row.dump());
    const Schedule schedule(options);
    const auto& rates = row.at("rates");
    for (std::size_t i = 0; i < rates.size(); ++i) {
      expect_rate(options.kind, schedule.at(static_cast<std::int64_t>(i)), rates[i]);
    }
  }
}

TEST(Schedule, EqualsTorchsStepLr) {
  for (const Json& row : train_reference("deepspeed.json", "step_lr")) {
    ScheduleOptions options;
    options.kind = "StepLR";
    options.learning_rate = row.at("rate");
    options.step_size = row.at("step_size");
    options.gamma = row.at("gamma");
    const Schedule schedule(options);
    const auto& rates = row.at("rates");
    for (std::size_t i = 0; i < rates.size(); ++i) {
      EXPECT_EQ(schedule.at(static_cast<std::int64_t>(i)), rates[i].get<double>()) << row.dump() << " epoch " << i;
    }
  }
}

TEST(Schedule, WarmupStepsBeatTheRatioWhichIsRoundedUp) {
  ScheduleOptions options;
  options.total_steps = 93;
  options.warmup_ratio = 0.1;
  EXPECT_EQ(warmup_steps_of(options), 10);
  options.warmup_steps = 3;
  EXPECT_EQ(warmup_steps_of(options), 3);
}

std::string refusal(const ScheduleOptions& options) {
  try {
    Schedule schedule(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  ScheduleOptions options;
  options.total_steps = 10;
  options.kind = "Linear";
  EXPECT_NE(refusal(options).find("one of linear, cosine"), std::string::npos);
  options.kind = "linear";
  options.warmup_steps = 11;
  EXPECT_EQ(refusal(options), "warmup_steps is 11, but the run has only 10 updates: give at most that many");
  options.kind = "constant_with_warmup";
  EXPECT_EQ(refusal(options), "");
  options = {.kind = "linear", .total_steps = 10, .warmup_ratio = 1.5};
  EXPECT_NE(refusal(options), "");
  options = {.kind = "polynomial", .learning_rate = 1e-8, .total_steps = 10};
  EXPECT_NE(refusal(options), "");
  options = {.kind = "polynomial", .total_steps = 10, .warmup_steps = 10};
  EXPECT_NE(refusal(options), "");
  options = {.kind = "cosine_with_min_lr", .total_steps = 10};
  EXPECT_NE(refusal(options), "");
  options = {.kind = "linear", .learning_rate = NAN, .total_steps = 10};
  EXPECT_NE(refusal(options), "");
  options = {.kind = "StepLR", .total_steps = 10, .step_size = 0};
  EXPECT_NE(refusal(options), "");
}

}  // namespace
}  // namespace tessera
