#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/cpu_memory.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

// V x C numbers, far more than everything else in the model.
std::shared_ptr<LanguageModel> model_with_large_table(bool bloom, at::ScalarType type) {
  Json config = {{"model_type", bloom ? "bloom" : "tessera-gpt"}, {"vocab_size", 20'000}, {"hidden_size", 32}};
  config[bloom ? "n_head" : "num_heads"] = 2;
  config[bloom ? "n_layer" : "num_layers"] = 1;
  if (!bloom) config["ff_dim"] = 32;
  auto model = make_language_model(config, "test", type);
  initialise(*model, 1);
  return model;
}

TEST(TiedTable, GradientIsOneTableAndDense) {
  start_counting_cpu_memory();
  for (const bool bloom : {true, false}) {
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const auto model = model_with_large_table(bloom, type);
      const PackedBatch batch = counted_batch({7, 5});
      UnitRunner runner;
      const std::int64_t before = live_cpu_bytes();
      kernels::LinearCrossEntropy how;
      how.chunk_rows = 1;
      const kernels::LossSum loss = model->loss(batch, runner, how);
      reset_peak_cpu_bytes();
      loss.sum.backward();
      const std::string name = bloom ? "transformer.word_embeddings.weight" : "embedding.weight";
      const at::Tensor gradient = model->named_parameters()[name].grad();
      EXPECT_FALSE(gradient.is_sparse());
      const auto table = static_cast<std::int64_t>(gradient.nbytes());
      EXPECT_LT(peak_cpu_bytes() - before, table + table / 4) << "a second table was made";
    }
  }
}

// The sum of the gradients that the head and the embedding give separately.
TEST(TiedTable, GradientIsTheSumOfBothUses) {
  const auto model = small_bloom();
  const PackedBatch batch = counted_batch({9, 4});
  UnitRunner runner;
  const std::string name = "transformer.word_embeddings.weight";
  model->loss(batch, runner).sum.backward();
  const at::Tensor found = model->named_parameters()[name].grad().clone();
  model->zero_grad();
  const at::Tensor logits = model->logits(batch, runner);
  at::cross_entropy_loss(logits, batch.targets, {}, at::Reduction::Sum).backward();
  const at::Tensor expected = model->named_parameters()[name].grad();
  EXPECT_LE((found - expected).abs().max().item<float>(), 1e-5 * expected.abs().max().item<float>());
}

// A batch without counted targets trains nothing and leaves dense zero gradients.
TEST(TiedTable, WithoutCountedTargetsTheGradientIsZeros) {
  const auto model = small_bloom();
  PackedBatch batch = counted_batch({6});
  batch.targets.fill_(kIgnoredTarget);
  UnitRunner runner;
  const kernels::LossSum loss = model->loss(batch, runner);
  EXPECT_EQ(loss.num_counted, 0);
  loss.sum.backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_FALSE(item.value().grad().is_sparse()) << item.key();
    EXPECT_EQ(item.value().grad().abs().max().item<float>(), 0) << item.key();
  }
}

}  // namespace
}  // namespace tessera
