// Tessera's own text models through the public headers alone.
#include "tessera/text_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/contains.h"
#include "support/message_of.h"
#include "support/test_folder.h"
#include "tessera/checkpoint.h"
#include "tessera/optimizer.h"
#include "tessera/shard.h"

namespace tessera {
namespace {

const char* const kBloom =
    R"({"model_type": "bloom", "vocab_size": 40, "hidden_size": 32, "n_layer": 2, "n_head": 4, "hidden_dropout": 0.1})";
const char* const kQwen3 = R"({"model_type": "qwen3", "vocab_size": 40, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16})";

std::vector<std::vector<std::int64_t>> sequences_of(int rank) {
  return {{1, 2, 3, 4, 5 + rank}, {7, 8}, {9}};
}

std::vector<double> losses_of(const char* config, const std::string& strategy, const std::filesystem::path& folder) {
  std::vector<double> losses;
  run_thread_ranks(2, {}, [&](World& world) {
    const auto model = make_text_model(config, 1 + static_cast<std::uint64_t>(world.rank()));
    Sharded sharded(world, *model, {.spread = {.strategy = strategy}});
    EXPECT_EQ(sharded.units().size(), 2u);
    Optimizer optimizer(sharded, AdamW{.learning_rate = 1e-2});
    const PackedBatch batch = next_token_batch(sequences_of(world.rank()), world.device());
    EXPECT_EQ(batch.num_counted, 5);
    for (std::uint64_t step = 0; step < 4; ++step) {
      model->set_dropout_seed(2 * step + static_cast<std::uint64_t>(world.rank()));
      const at::Tensor sum = sharded.forward([&] { return model->loss_sum(batch, sharded); });
      sharded.backward(sum);
      const double mean = mean_over_ranks(world, sum) / 5;
      optimizer.step({.max_norm = 1, .divisor = 10});
      if (world.rank() == 0) losses.push_back(mean);
    }
    save_text_model(sharded, *model, folder);
  });
  return losses;
}

class TextModelOf : public testing::TestWithParam<const char*> {};

TEST_P(TextModelOf, TrainsBySeveralStrategiesAndIsSavedAsAFolder) {
  const TestFolder folder_of_test;
  const auto folder = folder_of_test / "model";
  const std::vector<double> expected = losses_of(GetParam(), "ddp", folder);
  EXPECT_LT(expected.back(), expected.front());
  for (const char* strategy : {"zero1", "full_shard"}) {
    EXPECT_EQ(losses_of(GetParam(), strategy, folder), expected) << strategy;
  }
  const auto loaded = load_text_model(folder);
  loaded->eval();
  UnitRunner plain;
  const at::NoGradGuard no_gradients;
  const double loss = loaded->loss_sum(next_token_batch(sequences_of(0), at::kCPU), plain).item<double>() / 5;
  EXPECT_LT(loss, expected.front());
}

INSTANTIATE_TEST_SUITE_P(All, TextModelOf, testing::Values(kBloom, kQwen3),
                         [](const auto& tested) { return tested.param == kBloom ? "bloom" : "qwen3"; });

TEST(TextModel, RefusesWhatItCannotMake) {
  EXPECT_TRUE(
      contains(message_of([] { make_text_model(R"({"model_type": "mixtral"})", 1); }),
               "the config: model_type: expected one of bloom, gemma3_text, gpt2, llama, mistral, olmo2, olmo3, phi3, "
               "qwen2, qwen3, smollm3, tessera-gpt, found \"mixtral\""));
  EXPECT_TRUE(contains(message_of([] { make_text_model("{", 1); }), "the config:1:2"));
  EXPECT_TRUE(contains(message_of([] { load_text_model("/no/such/folder"); }), "/no/such/folder"));
  EXPECT_NE(message_of([] { next_token_batch({{1}, {}}, at::kCPU); }), "nothing was thrown");
  run_thread_ranks(1, {}, [](World& world) {
    const auto model = make_text_model(kBloom, 1), other = make_text_model(kBloom, 1);
    Sharded sharded(world, *model);
    EXPECT_TRUE(
        contains(message_of([&] { save_text_model(sharded, *other, "folder"); }), "pass the model that was sharded"));
  });
}

}  // namespace
}  // namespace tessera
