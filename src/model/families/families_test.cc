// What families read where a config.json leaves keys out, and what they refuse: as transformers' configuration classes.
#include <gtest/gtest.h>

#include "core/error.h"
#include "model/families/family.h"
#include "model/language_model.h"
#include "support/contains.h"
#include "support/small_decoder_config.h"

namespace tessera {
namespace {

Json small_config(const std::string& family, const Json& changes = Json::object()) {
  Json config = small_decoder_config(family);
  config.update(changes);
  return config;
}

DecoderShape family_shape(const Json& config) {
  const JsonSource source{&config, "config.json"};
  const JsonReader reader(source);
  return family_of(reader).read(reader).shape;
}

DecoderShape small_shape(const std::string& family, const Json& changes) {
  return family_shape(small_config(family, changes));
}

// The message that refuses the config; empty if it is accepted.
std::string family_refusal(const std::string& family, const Json& changes) {
  try {
    make_language_model(small_config(family, changes), "config.json", at::device(at::kMeta));
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::vector<std::int64_t> windows_of(const DecoderShape& shape) {
  std::vector<std::int64_t> windows;
  for (const LayerShape& layer : shape.layers) windows.push_back(layer.window);
  return windows;
}

Json layer_types(std::initializer_list<const char*> words) {
  Json types = Json::array();
  for (const char* word : words) types.push_back(std::string(word) + "_attention");
  return types;
}

TEST(FamilyConfig, APaddingTokenThatIsLeftOutIsTheFamilys) {
  const Json large = {{"vocab_size", 200'000}};
  const auto padding_of = [&](const std::string& family) {
    Json config = small_config(family, large);
    config.erase("pad_token_id");
    return family_shape(config).padding_id;
  };
  EXPECT_EQ(padding_of("gemma3_text"), 0);
  EXPECT_EQ(padding_of("olmo2"), 1);
  EXPECT_EQ(padding_of("phi3"), 32000);
  EXPECT_EQ(padding_of("smollm3"), 128004);
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3", "gpt2"}) {
    EXPECT_EQ(padding_of(family), std::nullopt) << family;
  }
  EXPECT_EQ(small_shape("gemma3_text", {{"pad_token_id", nullptr}}).padding_id, std::nullopt);
  EXPECT_EQ(small_shape("llama", {{"pad_token_id", -1}}).padding_id, 49);
  Json small = small_config("phi3");
  small.erase("pad_token_id");
  EXPECT_THROW(family_shape(small), UsageError) << "32000 is beyond the vocabulary of 50";
}

TEST(FamilyConfig, GemmasActivationThatIsLeftOutIsGelu) {
  EXPECT_EQ(small_shape("gemma3_text", Json::object()).mlp, MlpKind::kGatedGelu);
  EXPECT_EQ(small_shape("gemma3_text", {{"hidden_act", "silu"}}).mlp, MlpKind::kGatedGelu) << "not Gemma's key";
  EXPECT_EQ(small_shape("gemma3_text", {{"hidden_activation", "silu"}}).mlp, MlpKind::kGatedSilu);
}

TEST(FamilyConfig, GemmasLocalLayersHaveAThetaOfTheirOwn) {
  const auto thetas = [](const Json& changes) {
    const DecoderShape shape = small_shape("gemma3_text", changes);
    return std::pair(shape.rotaries.at(0).theta, shape.rotaries.at(1).theta);
  };
  const Json nested = {{"full_attention", {{"rope_type", "default"}}}, {"sliding_attention", nullptr}};
  EXPECT_EQ(thetas(Json::object()), std::pair(1e6, 1e4));
  EXPECT_EQ(thetas({{"rope_theta", 500.0}}), std::pair(500.0, 1e4));
  EXPECT_EQ(thetas({{"rope_theta", 500.0}, {"rope_local_base_freq", 30}}), std::pair(500.0, 30.0));
  EXPECT_EQ(thetas({{"rope_parameters", nested}, {"rope_theta", 500.0}}), std::pair(500.0, 1e4));
  EXPECT_EQ(thetas({{"rope_parameters", nested}, {"rope_local_base_freq", 30}}), std::pair(1e6, 30.0));
  const Json scaling = {{"rope_type", "linear"}, {"factor", 8}};
  EXPECT_EQ(small_shape("gemma3_text", {{"rope_scaling", scaling}}).rotaries.at(0).factor, 8);
  EXPECT_TRUE(contains(family_refusal("gemma3_text", {{"rope_parameters", nested}, {"rope_scaling", scaling}}),
                       "rope_scaling: expected none beside rope_parameters"));
}

TEST(FamilyConfig, GemmaNeedsAWindowForItsLocalLayers) {
  EXPECT_TRUE(contains(family_refusal("gemma3_text", {{"sliding_window", nullptr}}), "sliding_window: null"));
  EXPECT_EQ(family_refusal("gemma3_text",
                           {{"sliding_window", nullptr}, {"layer_types", layer_types({"full", "full", "full"})}}),
            "");
}

// transformers reads a Mistral with layer_types as what it calls Ministral.
TEST(FamilyConfig, MistralsWindowsFollowItsLayerTypes) {
  EXPECT_EQ(windows_of(small_shape("mistral", Json::object())), (std::vector<std::int64_t>{4, 4, 4}));
  EXPECT_EQ(windows_of(small_shape("mistral", {{"layer_types", layer_types({"full", "sliding", "full"})}})),
            (std::vector<std::int64_t>{0, 4, 0}));
  EXPECT_EQ(windows_of(small_shape("mistral", {{"sliding_window", nullptr}})), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(FamilyConfig, OnlyPhi3FillsItsCacheAgainForLongRope) {
  const std::vector<double> ones(8, 1.0);
  const Json longrope = {{"rope_type", "longrope"}, {"short_factor", ones}, {"long_factor", ones}};
  EXPECT_TRUE(small_shape("phi3", {{"rope_scaling", longrope}}).rotaries.at(0).refills_cache);
  EXPECT_FALSE(small_shape("llama", {{"rope_scaling", longrope}}).rotaries.at(0).refills_cache);
  EXPECT_TRUE(contains(family_refusal("llama", {{"rope_scaling", longrope}, {"original_max_position_embeddings", 1}}),
                       "rope_scaling: the attention factor"));
}

TEST(FamilyConfig, RotaryPositionsByKindsOfLayersAreRefusedWhereLayersAreAlike) {
  const Json nested = {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 5.0}}}};
  for (const char* family : {"llama", "qwen3", "smollm3", "phi3"}) {
    EXPECT_TRUE(contains(family_refusal(family, {{"rope_parameters", nested}}), "rope_parameters.full_attention"))
        << family;
  }
  EXPECT_EQ(family_refusal("llama", {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5.0}}}}), "");
}

TEST(FamilyConfig, WhatNoFamilySupportsIsRefusedByAll) {
  const Json layers = {{"1", {{"sliding_window", 8}}}};
  for (const std::string& family : decoder_families()) {
    EXPECT_EQ(
        family_refusal(family, {{"is_causal", true}, {"quantization_config", nullptr}, {"per_layer_config", nullptr}}),
        "")
        << family;
    EXPECT_TRUE(contains(family_refusal(family, {{"is_causal", false}}), "is_causal: expected true")) << family;
    EXPECT_TRUE(contains(family_refusal(family, {{"per_layer_config", layers}}), "per_layer_config: ")) << family;
    EXPECT_TRUE(contains(family_refusal(family, {{"quantization_config", {{"bits", 4}}}}), "quantization_config: "))
        << family;
  }
}

TEST(FamilyConfig, IsWrittenWithTheClassOfTheModelWithItsHead) {
  for (const char* given : {"LlamaModel", "LlamaForSequenceClassification"}) {
    const auto model =
        make_language_model(small_config("llama", {{"architectures", {given}}}), "config.json", at::device(at::kMeta));
    EXPECT_EQ(model->config().at("architectures"), Json::array({"LlamaForCausalLM"})) << given;
  }
}

// As transformers' classes register them: optimizers of other programs know parameters by their numbers.
TEST(FamilyConfig, ParametersComeInTheOrderOfTransformers) {
  const auto order_of = [](const std::string& family) {
    const auto model = make_language_model(small_config(family), "config.json", at::device(at::kMeta));
    std::vector<std::string> order;
    for (const auto& item : model->named_parameters()) {
      const std::string block = family == "gpt2" ? "transformer.h.0." : "model.layers.0.";
      if (item.key().starts_with(block)) order.push_back(item.key().substr(block.size()));
    }
    return order;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(
      order_of("gemma3_text"),
      (Names{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
             "self_attn.q_norm.weight", "self_attn.k_norm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
             "mlp.down_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight",
             "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight"}));
  EXPECT_EQ(order_of("phi3"),
            (Names{"self_attn.o_proj.weight", "self_attn.qkv_proj.weight", "mlp.gate_up_proj.weight",
                   "mlp.down_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight"}));
  EXPECT_EQ(order_of("olmo2"), (Names{"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
                                      "self_attn.o_proj.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight",
                                      "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight",
                                      "post_attention_layernorm.weight", "post_feedforward_layernorm.weight"}));
  EXPECT_EQ(order_of("gpt2"), (Names{"ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
                                     "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias",
                                     "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"}));
}

}  // namespace
}  // namespace tessera
