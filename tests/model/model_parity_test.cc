#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/families/bloom.h"
#include "model/generation.h"
#include "model/model_checks.h"
#include "support/cpu_memory.h"
#include "support/pack_padded.h"

namespace tessera {
namespace {

class ModelParity : public testing::TestWithParam<ModelCase> {};

TEST_P(ModelParity, LogitsAreTheOriginalsWhicheverSideWasPadded) {
  check_logits(GetParam(), at::kCPU);
}

TEST_P(ModelParity, LossAndEveryGradientAreTheOriginals) {
  check_loss_and_gradients(GetParam(), at::kCPU);
}

TEST_P(ModelParity, TheCacheGivesTheLogitsOfTheWholeSequence) {
  check_step_logits(GetParam(), at::kCPU);
}

TEST_P(ModelParity, DropoutIsAFunctionOfItsSeedAndCheckpointingGivesTheSameBits) {
  check_dropout_and_checkpointing(GetParam(), at::kCPU, at::kFloat);
  check_dropout_and_checkpointing(GetParam(), at::kCPU, at::kBFloat16);
}

INSTANTIATE_TEST_SUITE_P(All, ModelParity, testing::ValuesIn(model_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(ModelsParity, GradientsInBf16AreWithinItsError) {
  check_all_bf16_gradients(at::kCPU);
}

class DecoderParity : public testing::TestWithParam<ModelCase> {};

TEST_P(DecoderParity, GreedyTokensAreTheOriginals) {
  check_greedy_rows(GetParam(), at::kCPU);
}

TEST_P(DecoderParity, AConfigOfTransformers4IsTheSameModel) {
  TensorFile file = model_reference(GetParam().name);
  file.metadata["config"] = file.metadata.at("config_v4");
  const auto older = model_of(file, at::kCPU), newer = model_of(model_reference(GetParam().name), at::kCPU);
  UnitRunner runner;
  const at::NoGradGuard no_grad;
  const PackedBatch batch = pack_padded(file.at("ids_right"), file.at("mask_right"), file.at("labels_right"));
  EXPECT_TRUE(at::equal(older->logits(batch, runner), newer->logits(batch, runner)));
}

INSTANTIATE_TEST_SUITE_P(All, DecoderParity, testing::ValuesIn(decoder_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(BloomParity, Bf16IsAsNearToFloat32AsTheOriginals) {
  check_bf16_logits(at::kCPU);
}

TEST(BloomParity, GreedyContinuationsAreTheOriginalsWithAndWithoutCache) {
  check_greedy_generation(at::kCPU);
}

TEST(BloomParity, SlopesAreTheOriginals) {
  for (const char* name : {"bloom", "bloom_6_heads"}) {
    const at::Tensor reference = model_reference(name).at("slopes");
    const std::vector<float> slopes = alibi_slopes(reference.numel());
    EXPECT_TRUE(at::equal(at::tensor(slopes), reference)) << name;
  }
}

TEST(BloomParity, PaddingOnEitherSideGivesOneAndTheSamePackedBatch) {
  const TensorFile file = model_reference("bloom");
  const PackedBatch left = pack_padded(file.at("ids_left"), file.at("mask_left"), file.at("labels_left"));
  const PackedBatch right = pack_padded(file.at("ids_right"), file.at("mask_right"), file.at("labels_right"));
  EXPECT_TRUE(at::equal(left.input_ids, right.input_ids));
  EXPECT_TRUE(at::equal(left.positions, right.positions));
  EXPECT_TRUE(at::equal(left.targets, right.targets));
  EXPECT_TRUE(at::equal(left.cu_seqlens, right.cu_seqlens));
  EXPECT_EQ(left.max_seqlen, 14);
}

// The draws match torch.multinomial: the same seed gives what transformers gives after torch.manual_seed.
TEST(BloomParity, DrawnContinuationsAreTheOriginalsForTheSameSeed) {
  const TensorFile file = model_reference("bloom_generation");
  const auto model = model_of(file, at::kCPU);
  UnitRunner runner;
  GenerationOptions options;
  options.max_new_tokens = file.at("sampled").size(1);
  options.sampling = {true, 1.3, 20, 0.9};
  options.seed = 77;
  std::vector<TokenIds> prompts;
  const at::Tensor ids = file.at("ids_right"), lengths = file.at("mask_right").sum(1);
  for (std::int64_t i = 0; i < ids.size(0); ++i) {
    const auto* begin = ids[i].const_data_ptr<std::int64_t>();
    prompts.emplace_back(begin, begin + lengths[i].item<std::int64_t>());
  }
  const auto drawn = generate(*model, prompts, options, runner);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_TRUE(at::equal(at::tensor(drawn[i], at::kLong), file.at("sampled")[static_cast<std::int64_t>(i)])) << i;
  }
}

TEST(Checkpointing, SavesTheMemoryThatIsCalculated) {
  start_counting_cpu_memory();
  check_activation_memory(at::kCPU, at::kFloat, live_cpu_bytes);
  check_activation_memory(at::kCPU, at::kBFloat16, live_cpu_bytes);
}

TEST(Sampling, FiltersLeaveWhatTheOriginalsLeave) {
  const TensorFile file = model_reference("filters");
  for (int i = 0; file.has("settings_" + std::to_string(i)); ++i) {
    const at::Tensor settings = file.at("settings_" + std::to_string(i));
    Sampling sampling{true, settings[0].item<double>(), static_cast<std::int64_t>(settings[1].item<double>()),
                      settings[2].item<double>()};
    EXPECT_TRUE(at::equal(filter_scores(file.at("scores"), sampling), file.at("filtered_" + std::to_string(i)))) << i;
  }
}

}  // namespace
}  // namespace tessera
