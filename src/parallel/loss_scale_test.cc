#include "parallel/loss_scale.h"

#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"

namespace tessera {
namespace {

using Rule = LossScaleOptions::Rule;

// Compared with torch's own kernel of GradScaler.update, over a thousand steps of which some are skipped.
TEST(LossScaler, FollowsTorchsOwn) {
  LossScaleOptions options;
  options.growth_interval = 7;
  LossScaler scaler(options);
  at::Tensor scale = at::full({}, options.initial, at::kFloat), tracker = at::zeros({}, at::kInt);
  std::mt19937 random(1);
  for (int step = 0; step < 1000; ++step) {
    const bool skipped = random() % 17 == 0;
    const at::Tensor found_inf = at::full({}, skipped ? 1.0 : 0.0, at::kFloat);
    at::_amp_update_scale_(scale, tracker, found_inf, options.growth_factor, options.backoff_factor,
                           options.growth_interval);
    scaler.after_step(skipped);
    ASSERT_EQ(scaler.scale(), scale.item<double>()) << "step " << step;
    ASSERT_EQ(scaler.state().num_clean_steps, tracker.item<std::int64_t>()) << "step " << step;
  }
}

TEST(LossScaler, TorchsNeverGrowsToInfinity) {
  LossScaleOptions options;
  options.growth_interval = 1;
  LossScaler scaler(options);
  for (int step = 0; step < 300; ++step) scaler.after_step(false);
  EXPECT_EQ(scaler.scale(), std::pow(2.0, 127));
}

std::vector<double> scales_after(const LossScaleOptions& options, const std::string& steps) {
  LossScaler scaler(options);
  std::vector<double> scales;
  for (const char step : steps) {
    scaler.after_step(step == 'x');
    scales.push_back(scaler.scale());
  }
  return scales;
}

LossScaleOptions deepspeed() {
  LossScaleOptions options;
  options.rule = Rule::kDeepSpeed;
  options.initial = 16;
  options.growth_interval = 2;
  return options;
}

// Worked out by hand from DeepSpeed's rule: the scale grows when the number of clean steps since the last overflow,
// minus one, is a multiple of the window; the first overflow only uses up the hysteresis.
TEST(LossScaler, FollowsDeepSpeedsWindowAndHysteresis) {
  EXPECT_EQ(scales_after(deepspeed(), "...."), (std::vector<double>{16, 16, 32, 32}));
  EXPECT_EQ(scales_after(deepspeed(), "....."), (std::vector<double>{16, 16, 32, 32, 64}));
  EXPECT_EQ(scales_after(deepspeed(), "xxx"), (std::vector<double>{16, 8, 4}));
  EXPECT_EQ(scales_after(deepspeed(), "x.x"), (std::vector<double>{16, 16, 8}));  // a clean step restores nothing
  EXPECT_EQ(scales_after(deepspeed(), "x...x"), (std::vector<double>{16, 16, 16, 32, 32}));  // growth does
  LossScaleOptions consecutive = deepspeed();
  consecutive.consecutive_hysteresis = true;
  EXPECT_EQ(scales_after(consecutive, "x.x"), (std::vector<double>{16, 16, 16}));
}

TEST(LossScaler, DeepSpeedsEndsTheRunAtTheMinimum) {
  LossScaleOptions options = deepspeed();
  options.hysteresis = 1;
  options.minimum = 6;
  LossScaler scaler(options);
  scaler.after_step(true);
  scaler.after_step(true);
  EXPECT_EQ(scaler.scale(), 6);
  EXPECT_THROW(scaler.after_step(true), Error);
}

TEST(LossScaler, AFixedOneStays) {
  LossScaleOptions options;
  options.rule = Rule::kFixed;
  options.initial = 128;
  EXPECT_EQ(scales_after(options, "x.x"), (std::vector<double>{128, 128, 128}));
}

TEST(LossScaler, GoesOnFromASavedState) {
  LossScaler one(deepspeed()), other(deepspeed());
  for (const char step : std::string("..x.")) one.after_step(step == 'x');
  other.set_state(one.state());
  for (const char step : std::string("x..x.....")) {
    one.after_step(step == 'x');
    other.after_step(step == 'x');
    EXPECT_EQ(one.scale(), other.scale());
  }
}

}  // namespace
}  // namespace tessera
