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
#include "support/small_decoder_config.h"

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
