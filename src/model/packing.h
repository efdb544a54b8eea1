// Converts padded or separate sequences to the packed form that the models take.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "tessera/packed_batch.h"

namespace tessera {

// Rows of [B, S] int64 whose real tokens are marked 1 in `mask` (int64 or bool), with padding to the left or right of
// them. `labels` [B, S], not shifted, as transformers takes them, or undefined: then nothing is counted. A label whose
// predicting position is padding is not counted. Refused: a row without a real token, padding between real tokens.
PackedBatch pack_padded(const at::Tensor& ids, const at::Tensor& mask, const at::Tensor& labels = {});

// For generation: nothing is counted. Refused: no sequences, an empty sequence.
PackedBatch pack_sequences(const std::vector<std::vector<std::int64_t>>& sequences, const at::Device& device);

}  // namespace tessera
