// Picks the next token from the logits: the best one, or a seeded draw from what temperature, top-k and top-p leave, in
// transformers' order and with its rules.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace tessera {

struct Sampling {
  bool do_sample = false;   // false: the token with the largest logit, the first of equals
  double temperature = 1;   // logits are divided by it
  std::int64_t top_k = 50;  // only the k largest logits (and ties with the last); 0: all
  double top_p = 1;         // only the fewest tokens whose probabilities reach it, at least one; 1: all
};

// Throws UsageError for an invalid value, naming it and what is allowed.
void check_sampling(const Sampling& sampling);

// scores: [B, V] to float32 with -inf where a filter removed the token.
at::Tensor filter_scores(const at::Tensor& scores, const Sampling& sampling);

// [B] int64 from scores [B, V]; kNoToken for a row with a value that is not finite, found without waiting for a GPU.
// `generator` is on the scores' device; it is used if do_sample is set, with one draw for all rows, as in
// torch.multinomial.
inline constexpr std::int64_t kNoToken = -1;
at::Tensor choose_tokens(const at::Tensor& scores, const Sampling& sampling, at::Generator& generator);

at::Generator make_generator(const at::Device& device, std::uint64_t seed);

}  // namespace tessera
