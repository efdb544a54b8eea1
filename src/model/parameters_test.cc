#include "model/parameters.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "support/small_decoder_config.h"
#include "support/small_language_model.h"

namespace tessera {
namespace {

TEST(Initialise, DrawsMatricesAndSetsNormsAndBiases) {
  const auto model = small_bloom();
  for (const auto& item : model->named_parameters()) {
    const at::Tensor value = item.value().detach();
    if (value.dim() == 2) {
      EXPECT_NEAR(value.std().item<float>(), 0.1, 0.01) << item.key();
      EXPECT_NEAR(value.mean().item<float>(), 0, 0.01) << item.key();
    } else {
      EXPECT_TRUE((value == (item.key().ends_with("bias") ? 0 : 1)).all().item<bool>()) << item.key();
    }
  }
}

TEST(Initialise, IsAFunctionOfSeedAndNameAlone) {
  const auto first = small_bloom(), second = small_bloom();
  initialise(*second, 2);
  const auto weight = [](LanguageModel& model, const std::string& name) { return model.named_parameters()[name]; };
  const std::string name = "transformer.h.1.mlp.dense_h_to_4h.weight";
  EXPECT_FALSE(at::equal(weight(*first, name), weight(*second, name)));
  at::Tensor alone = at::empty_like(weight(*first, name)).detach();
  initialise_parameter(alone, name, {.deviation = 0.1}, 1);
  EXPECT_TRUE(at::equal(alone, weight(*first, name)));
  at::Tensor half = alone.to(at::kBFloat16);
  initialise_parameter(half, name, {.deviation = 0.1}, 1);
  EXPECT_TRUE(at::equal(half, alone.to(at::kBFloat16)));
  EXPECT_FALSE(at::equal(weight(*first, name), weight(*first, "transformer.h.2.mlp.dense_h_to_4h.weight")));
}

TEST(Initialise, ThePaddingTokensEmbeddingIsZero) {
  Json config = small_decoder_config("llama");
  config["pad_token_id"] = 3;
  const auto model = make_language_model(config);
  initialise(*model, 1);
  const auto parameters = model->named_parameters();
  const at::Tensor is_zero = (parameters["model.embed_tokens.weight"] == 0).all(1);
  EXPECT_TRUE(is_zero[3].item<bool>());
  EXPECT_EQ(is_zero.sum().item<std::int64_t>(), 1);
  EXPECT_FALSE((parameters["lm_head.weight"][3] == 0).any().item<bool>());
}

TEST(Initialise, ALargeParameterDoesNotDependOnTheNumberOfThreads) {
  const std::int64_t part = std::int64_t{1} << 21;
  at::Tensor alone = at::empty({2 * part + 5}).unsqueeze(0).requires_grad_(), together = at::empty_like(alone);
  const int num_threads = at::get_num_threads();
  at::set_num_threads(1);
  initialise_parameter(alone, "table", {.deviation = 0.1}, 1);
  at::set_num_threads(2);
  initialise_parameter(together, "table", {.deviation = 0.1}, 1);
  at::set_num_threads(num_threads);
  EXPECT_TRUE(at::equal(alone, together));
  const at::Tensor flat = alone.detach().flatten();
  EXPECT_NEAR(flat.std().item<float>(), 0.1, 0.001);
  EXPECT_FALSE(at::equal(flat.narrow(0, 0, part), flat.narrow(0, part, part)));
}

}  // namespace
}  // namespace tessera
