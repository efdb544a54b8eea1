#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "model/families/bloom.h"
#include "model/families/tessera_gpt.h"
#include "model/language_model.h"
#include "support/contains.h"

namespace tessera {
namespace {

// The message that refuses the config; empty if it is accepted.
std::string refusal(const std::string& text) {
  try {
    make_language_model(parse_json(text, "config.json"));
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string bloom_with(const std::string& field) {
  Json config = BloomConfig{}.to_json();
  config["vocab_size"] = 16;
  const Json fields = parse_json("{" + field + "}", "test");
  for (const auto& [name, value] : fields.items()) config[name] = value;
  return config.dump();
}

DecoderShape shape_of(const Json& config) {
  const JsonSource source{&config, "config.json"};
  const JsonReader reader(source);
  return family_of(reader).read(reader).shape;
}

TEST(BloomConfig, ReadsTheFileOfBloom560m) {
  const Json file = parse_json(R"({"apply_residual_connection_post_layernorm": false, "attention_dropout": 0.0,
      "architectures": ["BloomForCausalLM"], "attention_softmax_in_fp32": true, "bias_dropout_fusion": true,
      "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.1, "initializer_range": 0.02,
      "layer_norm_epsilon": 1e-06, "model_type": "bloom", "n_embed": 1024, "n_inner": null, "n_layer": 24,
      "num_attention_heads": 16, "offset_alibi": 100, "pretraining_tp": 1, "vocab_size": 250880})",
                               "config.json");
  const DecoderShape shape = shape_of(file);
  EXPECT_EQ(shape.hidden_size, 1024);
  EXPECT_EQ(shape.num_layers, 24);
  EXPECT_EQ(shape.num_heads, 16);
  EXPECT_EQ(shape.head_dim, 64);
  EXPECT_EQ(shape.vocab_size, 250880);
  EXPECT_EQ(shape.hidden_dropout, 0.1);
  EXPECT_EQ(shape.norm_epsilon, 1e-6);
  EXPECT_TRUE(shape.is_tied);
}

TEST(BloomConfig, WhatItWritesItReads) {
  BloomConfig config;
  config.num_heads = 4;
  config.residual_after_norm = true;
  config.tie_word_embeddings = false;
  config.attention_dropout = 0.25;
  const DecoderShape shape = shape_of(config.to_json());
  EXPECT_EQ(shape.num_heads, 4);
  EXPECT_TRUE(shape.residual_after_norm);
  EXPECT_FALSE(shape.is_tied);
  EXPECT_EQ(shape.attention_dropout, 0.25);
}

TEST(BloomConfig, RefusalsNameFileFieldAndWhatIsAllowed) {
  EXPECT_EQ(refusal(bloom_with("")), "");
  EXPECT_TRUE(
      contains(refusal(bloom_with(R"("model_type": "mixtral")")),
               "config.json: model_type: expected one of bloom, gemma3_text, gpt2, llama, mistral, olmo2, olmo3, phi3, "
               "qwen2, qwen3, smollm3, tessera-gpt, found \"mixtral\""));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("hidden_size": 65)")), "hidden_size: 65 is not a multiple of the 8"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("hidden_size": 0)")), "expected a whole number from 1 to"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("hidden_size": 64.0)")), "expected a whole number"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("vocab_size": 18446744073709551615)")), "expected a whole number"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("vocab_size": "many")")), "found \"many\""));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("n_layer": 2, "num_hidden_layers": 3)")),
                       "num_hidden_layers: expected 2 as n_layer, its other name, says, found 3: remove one"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("hidden_dropout": 1.0)")), "expected a number from 0 to 0.99"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("tie_word_embeddings": 1)")), "expected true or false"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("n_inner": 100)")), "n_inner: expected BLOOM's"));
  EXPECT_TRUE(contains(refusal(bloom_with(R"("slow_but_exact": true, "pretraining_tp": 4)")), "slow_but_exact: "));
  EXPECT_EQ(refusal(bloom_with(R"("slow_but_exact": true)")), "") << "it changes nothing with pretraining_tp 1";
  EXPECT_TRUE(contains(refusal("[1]"), "expected an object"));
  EXPECT_TRUE(contains(refusal("{}"), "\"model_type\" is missing"));
}

TEST(GptConfig, WhatItWritesItReadsAndWhatItCannotBeIsRefused) {
  GptConfig config;
  config.vocab_size = 32;
  config.hidden_size = 16;
  config.num_heads = 2;
  config.ff_dim = 24;
  config.learned_positions = true;
  EXPECT_EQ(shape_of(config.to_json()).inner_size, 24);
  EXPECT_EQ(make_language_model(config.to_json())->max_positions(), 512);
  Json broken = config.to_json();
  broken["positions"] = "sinus";
  EXPECT_TRUE(contains(refusal(broken.dump()), "positions: expected \"none\" or \"learned\", found \"sinus\""));
  broken = config.to_json();
  broken.erase("ff_dim");
  EXPECT_TRUE(contains(refusal(broken.dump()), "\"ff_dim\" is missing"));
}

TEST(BloomConfig, OfBloom560mGives559214592ParametersMoreThanHalfOfThemInTheBlocks) {
  BloomConfig config;
  config.hidden_size = 1024;
  config.num_layers = 24;
  config.num_heads = 16;
  const auto model = make_language_model(config.to_json(), "config.json", at::device(at::kMeta));  // allocates nothing
  std::int64_t all = 0, blocks = 0;
  for (const auto& item : model->named_parameters()) {
    all += item.value().numel();
    if (item.key().starts_with("transformer.h.")) blocks += item.value().numel();
  }
  EXPECT_EQ(all, 559'214'592);
  EXPECT_EQ(blocks, 302'309'376);
}

TEST(Olmo3Config, GivesEachKindOfLayerItsWindowAndRotaryPositions) {
  const auto olmo3_with = [](const std::string& field) {
    return R"({"model_type": "olmo3", "vocab_size": 16, "hidden_size": 16, "intermediate_size": 8,
               "num_hidden_layers": 4, "num_attention_heads": 2, "sliding_window": 3)" +
           field + "}";
  };
  const auto read = [&](const std::string& field) { return shape_of(parse_json(olmo3_with(field), "config.json")); };
  const DecoderShape usual = read("");
  std::vector<std::int64_t> windows;
  for (const LayerShape& layer : usual.layers) windows.push_back(layer.window);
  EXPECT_EQ(windows, (std::vector<std::int64_t>{3, 3, 3, 0}));
  for (const LayerShape& layer : usual.layers) EXPECT_EQ(usual.rotaries[*layer.rotary].theta, 500'000);
  const DecoderShape own = read(R"(, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 2.0,
      "rope_theta": 30.0}, "sliding_attention": {"rope_theta": 20.0}})");
  EXPECT_EQ(own.rotaries[*own.layers[0].rotary].theta, 20);
  EXPECT_EQ(own.rotaries[*own.layers[0].rotary].kind, RotaryKind::kPlain);
  EXPECT_EQ(own.rotaries[*own.layers[3].rotary].theta, 30);
  EXPECT_EQ(own.rotaries[*own.layers[3].rotary].kind, RotaryKind::kLinear);
  EXPECT_EQ(usual.padding_id, 1);
  EXPECT_FALSE(read(R"(, "pad_token_id": null)").padding_id);
  EXPECT_EQ(refusal(olmo3_with(R"(, "rope_theta": 500000)")), "");
  EXPECT_TRUE(contains(refusal(olmo3_with(R"(, "rope_theta": 10000)")), "rope_theta: in layers with a window"));
  // As the first releases of transformers 5 wrote it, which scaled every layer.
  EXPECT_TRUE(contains(refusal(olmo3_with(R"(, "rope_parameters": {"rope_type": "default"})")), "rope_parameters"));
  EXPECT_TRUE(contains(refusal(olmo3_with(R"(, "sliding_window": null)")), "sliding_window"));
}

// The names by which transformers and torch know the parameters.
TEST(ModelNames, AreTheOriginals) {
  BloomConfig bloom;
  bloom.vocab_size = 16;
  bloom.num_layers = 1;
  std::set<std::string> names;
  for (const auto& item : make_language_model(bloom.to_json())->named_parameters()) names.insert(item.key());
  const std::string block = "transformer.h.0.";
  const std::set<std::string> expected{"transformer.word_embeddings.weight",
                                       "transformer.word_embeddings_layernorm.weight",
                                       "transformer.word_embeddings_layernorm.bias",
                                       block + "input_layernorm.weight",
                                       block + "input_layernorm.bias",
                                       block + "self_attention.query_key_value.weight",
                                       block + "self_attention.query_key_value.bias",
                                       block + "self_attention.dense.weight",
                                       block + "self_attention.dense.bias",
                                       block + "post_attention_layernorm.weight",
                                       block + "post_attention_layernorm.bias",
                                       block + "mlp.dense_h_to_4h.weight",
                                       block + "mlp.dense_h_to_4h.bias",
                                       block + "mlp.dense_4h_to_h.weight",
                                       block + "mlp.dense_4h_to_h.bias",
                                       "transformer.ln_f.weight",
                                       "transformer.ln_f.bias"};
  EXPECT_EQ(names, expected);
  const auto model = make_language_model(bloom.to_json());
  ASSERT_EQ(model->units().size(), 1u);
  EXPECT_EQ(model->units()[0].name, "transformer.h.0");
  EXPECT_EQ(model->units()[0].kind, "BloomBlock");
  EXPECT_EQ(model->units()[0].module->parameters().size(), 12u);
}

}  // namespace
}  // namespace tessera
