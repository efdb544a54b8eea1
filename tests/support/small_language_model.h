// Small models for this layer's tests.
#pragma once

#include <memory>

#include "model/bloom.h"
#include "model/gpt.h"
#include "model/initialise.h"
#include "model/packing.h"

namespace tessera {

// With a tied head and random weights a token predicts itself: where that would hide a mistake, is_tied is false.
inline std::shared_ptr<Bloom> small_bloom(double dropout = 0, std::int64_t num_layers = 3, bool is_tied = true) {
  BloomConfig config;
  config.vocab_size = 50;
  config.hidden_size = 64;
  config.num_layers = num_layers;
  config.num_heads = 4;
  config.hidden_dropout = dropout;
  config.tie_word_embeddings = is_tied;
  config.initializer_range = 0.1;
  auto model = std::make_shared<Bloom>(config);
  initialise(*model, 1);
  return model;
}

inline std::shared_ptr<Gpt> small_gpt(double dropout = 0, std::int64_t num_layers = 3) {
  GptConfig config;
  config.vocab_size = 50;
  config.hidden_size = 64;
  config.num_layers = num_layers;
  config.num_heads = 4;
  config.ff_dim = 96;
  config.dropout = dropout;
  config.initializer_range = 0.1;
  auto model = std::make_shared<Gpt>(config);
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

}  // namespace tessera
