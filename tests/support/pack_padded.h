// Padded rows, as transformers takes them, in the packed form that the models take.
#pragma once

#include <ATen/ops/full_like.h>

#include <vector>

#include "model/generation.h"

namespace tessera {

// Rows of [B, S] int64 whose real tokens are marked 1 in `mask`, with padding to the left or right of them. `labels`
// [B, S] are not shifted.
inline PackedBatch pack_padded(const at::Tensor& ids, const at::Tensor& mask, const at::Tensor& labels) {
  const at::Tensor real = mask.cpu().to(at::kBool), own_ids = ids.cpu(), own_labels = labels.cpu();
  // The target of a token is its right neighbour's label.
  const at::Tensor shifted = at::full_like(own_labels, kIgnoredTarget);
  shifted.slice(1, 0, -1).copy_(own_labels.slice(1, 1));
  std::vector<TokenIds> sequences;
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    const at::Tensor tokens = own_ids[row].masked_select(real[row]).to(at::kLong).contiguous();
    sequences.emplace_back(tokens.const_data_ptr<std::int64_t>(),
                           tokens.const_data_ptr<std::int64_t>() + tokens.numel());
  }
  PackedBatch batch = pack_sequences(sequences, ids.device());
  batch.targets = shifted.masked_select(real).to(at::kLong).to(ids.device());
  batch.num_counted = batch.targets.ne(kIgnoredTarget).sum().item<std::int64_t>();
  return batch;
}

}  // namespace tessera
