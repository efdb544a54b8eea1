// Greedy generation without a cache, all tokens recomputed at each step: the reference of generate().
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "model/generation.h"
#include "model/run_modes.h"

namespace tessera {

inline std::vector<TokenIds> generate_plainly(LanguageModel& model, const std::vector<TokenIds>& prompts,
                                              std::int64_t max_new_tokens, const std::vector<std::int64_t>& eos_ids,
                                              UnitRunner& runner) {
  const Evaluating evaluating(model);
  const at::NoGradGuard no_gradients;
  std::vector<TokenIds> written(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    TokenIds sequence = prompts[i];
    while (std::ssize(written[i]) < max_new_tokens) {
      const PackedBatch batch = pack_sequences({sequence}, model.device());
      const at::Tensor logits = model.logits(batch, runner, at::tensor({std::ssize(sequence) - 1}).to(model.device()));
      const auto id = at::argmax(logits, -1).item<std::int64_t>();
      written[i].push_back(id);
      sequence.push_back(id);
      if (std::find(eos_ids.begin(), eos_ids.end(), id) != eos_ids.end()) break;
    }
  }
  return written;
}

}  // namespace tessera
