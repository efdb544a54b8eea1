// Packed sequences of random ids, as long as SQuAD's prompts with their answers: the text benchmarks train on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/generation.h"

namespace tessera {

// Chosen by hand, since BLOOM's vocabulary is not available here: 2,907 tokens in 16 sequences.
inline const std::vector<std::int64_t> kSquadLikeLengths = {98,  131, 142, 150, 155, 161, 168, 172,
                                                            178, 185, 190, 199, 212, 228, 249, 289};

inline std::vector<TokenIds> squad_like_sequences(std::int64_t vocab_size) {
  std::vector<TokenIds> result;
  std::int64_t number = 1;
  for (const std::int64_t length : kSquadLikeLengths) {
    result.emplace_back();
    for (std::int64_t i = 0; i < length; ++i) result.back().push_back(number = (number * 48271) % 2147483647);
    for (std::int64_t& id : result.back()) id %= vocab_size;
  }
  return result;
}

// Each token predicts the next; the last `counted` targets of each sequence count, or all of a shorter sequence.
inline PackedBatch training_batch(const std::vector<TokenIds>& rows, std::int64_t counted, const at::Device& device) {
  PackedBatch batch = pack_sequences(rows, at::kCPU);
  auto* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  std::int64_t begin = 0;
  for (const TokenIds& row : rows) {
    const auto length = static_cast<std::int64_t>(row.size());
    for (std::int64_t i = std::max<std::int64_t>(0, length - 1 - counted); i + 1 < length; ++i) {
      targets[begin + i] = row[static_cast<std::size_t>(i + 1)];
      ++batch.num_counted;
    }
    begin += length;
  }
  batch.input_ids = batch.input_ids.to(device);
  batch.positions = batch.positions.to(device);
  batch.targets = batch.targets.to(device);
  batch.cu_seqlens = batch.cu_seqlens.to(device);
  return batch;
}

}  // namespace tessera
