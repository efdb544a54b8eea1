// Continues text, for several prompts of different lengths at once: picks each next token from the logits, the best one
// or a seeded draw from what temperature, top-k and top-p leave, in transformers' order and with its rules.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/language_model.h"

namespace tessera {

using TokenIds = std::vector<std::int64_t>;

// The packed form that the models take, with nothing counted. Refused: no sequences, an empty sequence.
PackedBatch pack_sequences(const std::vector<TokenIds>& sequences, const at::Device& device);

struct Sampling {
  bool do_sample = false;   // false: the token with the largest logit, the first of equals
  double temperature = 1;   // logits are divided by it
  std::int64_t top_k = 50;  // only the k largest logits (and ties with the last); 0: all
  double top_p = 1;         // only the fewest tokens whose probabilities reach it, at least one; 1: all
};

// scores: [B, V] to float32 with -inf where a filter removed the token.
at::Tensor filter_scores(const at::Tensor& scores, const Sampling& sampling);

struct GenerationOptions {
  std::int64_t max_new_tokens = 20;
  Sampling sampling;
  std::uint64_t seed = 0;             // of the draws
  std::vector<std::int64_t> eos_ids;  // a sequence ends with the first of these, which is part of it
};

// The continuation of each prompt, without the prompt. The model is in eval mode meanwhile. The number of passes
// through the runner depends on when the sequences end. Throws UsageError for invalid options, an empty prompt, an id
// outside the vocabulary, or more tokens than the model has positions for; Error if the logits are not finite.
std::vector<TokenIds> generate(LanguageModel& model, const std::vector<TokenIds>& prompts,
                               const GenerationOptions& options, UnitRunner& runner);

}  // namespace tessera
