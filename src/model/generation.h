// Continues text, for several prompts of different lengths at once.
#pragma once

#include <cstdint>
#include <vector>

#include "model/language_model.h"
#include "model/sampling.h"

namespace tessera {

struct GenerationOptions {
  std::int64_t max_new_tokens = 20;
  Sampling sampling;
  std::uint64_t seed = 0;             // of the draws
  std::vector<std::int64_t> eos_ids;  // a sequence ends with the first of these, which is part of it
  bool use_cache = true;              // false: recompute all tokens at each step; the same tokens, slowly
};

using TokenIds = std::vector<std::int64_t>;

// The continuation of each prompt, without the prompt. The model is in eval mode meanwhile. The number of passes
// through the runner depends on when the sequences end. Throws UsageError for invalid options, an empty prompt, an id
// outside the vocabulary, or more tokens than the model has positions for; Error if the logits are not finite.
std::vector<TokenIds> generate(LanguageModel& model, const std::vector<TokenIds>& prompts,
                               const GenerationOptions& options, UnitRunner& runner);

}  // namespace tessera
