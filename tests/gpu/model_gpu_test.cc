// The text models on a GPU: the same parity as on the CPU, in float32 and bf16.
#include <ATen/ATen.h>
#include <ATen/DeviceAccelerator.h>
#include <gtest/gtest.h>

#include "comm/gpu_support.h"
#include "gpu/flavour.h"
#include "model/generation.h"
#include "model/model_checks.h"
#include "model/parameters.h"

namespace tessera {
namespace {

class ModelOnGpu : public testing::TestWithParam<ModelCase> {};

TEST_P(ModelOnGpu, LogitsAreTheOriginals) {
  check_logits(GetParam(), kGpu);
}

TEST_P(ModelOnGpu, LossAndEveryGradientAreTheOriginals) {
  check_loss_and_gradients(GetParam(), kGpu);
}

TEST_P(ModelOnGpu, TheCacheGivesTheLogitsOfTheWholeSequence) {
  check_step_logits(GetParam(), kGpu);
}

TEST_P(ModelOnGpu, DropoutIsAFunctionOfItsSeedAndCheckpointingGivesTheSameBits) {
  // FlashAttention adds the gradients of q in any order unless told to keep one.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  check_dropout_and_checkpointing(GetParam(), kGpu, at::kFloat);
  check_dropout_and_checkpointing(GetParam(), kGpu, at::kBFloat16);
  at::globalContext().setDeterministicAlgorithms(false, false);
}

INSTANTIATE_TEST_SUITE_P(All, ModelOnGpu, testing::ValuesIn(model_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(ModelsOnGpu, GradientsInBf16AreWithinItsError) {
  check_all_bf16_gradients(kGpu);
}

TEST(BloomOnGpu, Bf16IsAsNearToFloat32AsTheOriginals) {
  check_bf16_logits(kGpu);
}

TEST(BloomOnGpu, GreedyContinuationsAreTheOriginalsWithAndWithoutCache) {
  check_greedy_generation(kGpu);
}

TEST(BloomOnGpu, DrawsAreAFunctionOfTheSeed) {
  const auto model = model_of(model_reference("bloom_generation"), kGpu, at::kBFloat16);
  UnitRunner runner;
  GenerationOptions options;
  options.sampling = {true, 1.3, 20, 0.9};
  options.seed = 5;
  const std::vector<TokenIds> prompts = {{1, 2, 3}, {4}};
  const auto first = generate(*model, prompts, options, runner);
  EXPECT_EQ(generate(*model, prompts, options, runner), first);
  options.seed = 6;
  EXPECT_NE(generate(*model, prompts, options, runner), first);
}

TEST(BloomOnGpu, IsInitialisedAsOnTheCpu) {
  const TensorFile file = model_reference("bloom");
  const auto here = model_of(file, kGpu), there = model_of(file, at::kCPU);
  initialise(*here, 9);
  initialise(*there, 9);
  for (const auto& item : there->named_parameters()) {
    EXPECT_TRUE(at::equal(here->named_parameters()[item.key()].cpu(), item.value())) << item.key();
  }
}

TEST(CheckpointingOnGpu, SavesTheMemoryThatIsCalculated) {
  const auto live_bytes = [] {
    constexpr auto kAll = static_cast<std::size_t>(at::CachingAllocator::StatType::AGGREGATE);
    return at::accelerator::getDeviceStats(0).requested_bytes[kAll].current;
  };
  check_activation_memory(kGpu, at::kBFloat16, live_bytes);
}

}  // namespace
}  // namespace tessera
