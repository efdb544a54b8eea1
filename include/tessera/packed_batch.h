// Several sequences laid end to end, without padding: the input of the text models.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "tessera/ignored_target.h"

namespace tessera {

// B sequences with T tokens in total.
struct PackedBatch {
  at::Tensor input_ids;   // [T] int64
  at::Tensor positions;   // [T] int64: the place of each token within its own sequence, from 0
  at::Tensor targets;     // [T] int64: the token that each position must predict (already shifted), or kIgnoredTarget
  at::Tensor cu_seqlens;  // [B + 1] int32: where each sequence begins; the last is T
  std::int64_t max_seqlen = 0;
  std::int64_t num_counted = 0;  // targets that are not ignored
  at::Tensor counted{};          // [num_counted] int64: their places; undefined: found when needed
};

}  // namespace tessera
