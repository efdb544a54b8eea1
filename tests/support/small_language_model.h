// Small models for this layer's tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/families/bloom.h"
#include "model/families/tessera_gpt.h"
#include "model/generation.h"
#include "model/language_model.h"
#include "model/parameters.h"
#include "model/step_memory.h"

namespace tessera {

// With a tied head and random weights a token predicts itself: where that would hide a mistake, is_tied is false.
inline std::shared_ptr<LanguageModel> small_bloom(double dropout = 0, std::int64_t num_layers = 3,
                                                  bool is_tied = true) {
  BloomConfig config;
  config.vocab_size = 50;
  config.hidden_size = 64;
  config.num_layers = num_layers;
  config.num_heads = 4;
  config.hidden_dropout = dropout;
  config.tie_word_embeddings = is_tied;
  config.initializer_range = 0.1;
  auto model = make_language_model(config.to_json());
  initialise(*model, 1);
  return model;
}

inline std::shared_ptr<LanguageModel> small_gpt(double dropout = 0, std::int64_t num_layers = 3) {
  GptConfig config;
  config.vocab_size = 50;
  config.hidden_size = 64;
  config.num_layers = num_layers;
  config.num_heads = 4;
  config.ff_dim = 96;
  config.dropout = dropout;
  config.initializer_range = 0.1;
  auto model = make_language_model(config.to_json());
  initialise(*model, 1);
  return model;
}

// The families of today's decoders, by their model_type.
inline const std::vector<std::string>& decoder_families() {
  static const std::vector<std::string> names = {"llama", "mistral", "qwen2", "qwen3",  "gemma3_text",
                                                 "phi3",  "olmo2",   "gpt2",  "smollm3"};
  return names;
}

// A small model of such a family, with whatever its shape allows to differ from the others: grouped heads, windows
// shorter than the tests' rows, layers without rotary positions, heads of another size than hidden / heads.
inline Json small_decoder_config(const std::string& family, double dropout = 0) {
  if (family == "gpt2") {
    return {{"model_type", family},  {"vocab_size", 50},        {"n_embd", 64},           {"n_layer", 3},
            {"n_head", 4},           {"n_positions", 64},       {"resid_pdrop", dropout}, {"embd_pdrop", dropout},
            {"attn_pdrop", dropout}, {"initializer_range", 0.1}};
  }
  Json config = {{"model_type", family},         {"vocab_size", 50},         {"hidden_size", 64},
                 {"intermediate_size", 96},      {"num_hidden_layers", 3},   {"num_attention_heads", 4},
                 {"num_key_value_heads", 2},     {"initializer_range", 0.1}, {"attention_dropout", dropout},
                 {"max_position_embeddings", 64}};
  const auto set = [&](const Json& more) { config.update(more); };
  if (family == "mistral") set({{"sliding_window", 4}});
  if (family == "qwen2") set({{"tie_word_embeddings", true}, {"num_key_value_heads", 1}});
  if (family == "qwen3") set({{"tie_word_embeddings", true}, {"head_dim", 32}});
  if (family == "gemma3_text") {
    set({{"head_dim", 32}, {"query_pre_attn_scalar", 20}, {"sliding_window", 3}, {"sliding_window_pattern", 2}});
  }
  if (family == "phi3") set({{"resid_pdrop", dropout}, {"sliding_window", 5}, {"pad_token_id", 0}});
  if (family == "smollm3") set({{"no_rope_layer_interval", 2}, {"pad_token_id", 0}});
  return config;
}

inline std::shared_ptr<LanguageModel> small_decoder(const std::string& family, double dropout = 0) {
  auto model = make_language_model(small_decoder_config(family, dropout));
  initialise(*model, 1);
  return model;
}

// Sequences of the given lengths in which every token but the last predicts the next.
inline PackedBatch counted_batch(const std::vector<std::int64_t>& lengths) {
  std::vector<std::vector<std::int64_t>> sequences;
  std::int64_t number = 0;
  for (const std::int64_t length : lengths) {
    sequences.emplace_back();
    for (std::int64_t i = 0; i < length; ++i) sequences.back().push_back((number++ * 7 + 3) % 50);
  }
  PackedBatch batch = pack_sequences(sequences, at::kCPU);
  batch.targets.slice(0, 0, -1).copy_(batch.input_ids.slice(0, 1));
  batch.targets.index_fill_(0, batch.cu_seqlens.slice(0, 1).to(at::kLong) - 1, kIgnoredTarget);
  batch.num_counted = batch.input_ids.numel() - static_cast<std::int64_t>(lengths.size());
  return batch;
}

// What one unit keeps for backward beside its input, as StepMemory says.
inline std::int64_t bytes_kept_by_unit(const LanguageModel& model, std::int64_t num_tokens) {
  struct Sum : MemoryTape {
    std::int64_t bytes = 0;
    void take(std::int64_t more) override { bytes += more; }
    void give(std::int64_t less) override { bytes -= less; }
    void hand_over(std::int64_t) override {}
  };
  StepShape shape;
  shape.num_tokens = shape.num_counted = shape.longest = num_tokens;
  shape.element_bytes = static_cast<std::int64_t>(c10::elementSize(model.dtype()));
  shape.on_gpu = !model.device().is_cpu();
  shape.training = model.is_training();
  const auto step = language_step_memory(model.config(), "a test", shape);
  Sum kept;
  step->unit_forward(0, /*keeps=*/true, kept);
  return kept.bytes - step->output_bytes(0);
}

}  // namespace tessera
