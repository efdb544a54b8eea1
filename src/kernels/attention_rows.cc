#include <cmath>

#include "kernels/cpu_rows.h"
#include "kernels/vector_math.h"

namespace tessera::kernels {
namespace {

// A row's number, well mixed (splitmix64's finalizer): consecutive rows share no pattern.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// The factor on a probability: 0 or `kept`. Uses only 32-bit arithmetic, so that the loop vectorizes.
struct Mask {
  std::uint32_t low, high, threshold;
  float kept;

  Mask(const ScoreDropout& dropout, std::int64_t row)
      : low(0),
        high(0),
        threshold(static_cast<std::uint32_t>(static_cast<double>(dropout.probability) * 16777216.0)),
        kept(1.0f / (1.0f - dropout.probability)) {
    const std::uint64_t mixed = mix(dropout.row_seed + static_cast<std::uint64_t>(row));
    low = static_cast<std::uint32_t>(mixed);
    high = static_cast<std::uint32_t>(mixed >> 32);
  }

  float operator()(std::int64_t key) const {
    std::uint32_t x = low + static_cast<std::uint32_t>(key) * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13) ^ high) * 0xC2B2AE35u;
    x ^= x >> 16;
    return (x >> 8) < threshold ? 0.0f : kept;
  }
};

// What query i of a block sees: columns [begin, begin + count) of its row, the keys from `key` on. The last one is the
// query's own.
struct Seen {
  std::int64_t begin, count, key;

  Seen(const ScoreBlock& block, std::int64_t i) {
    const std::int64_t position = block.first + i;
    key = block.window > 0 && position >= block.window ? position - block.window + 1 : 0;
    begin = key - block.first_key;
    count = position + 1 - key;
  }
};

// Scores with scale and bias, for the `count` keys that the query sees.
inline void add_bias(const ScoreBlock& block, std::int64_t count, float* row) {
  const std::int64_t own = count - 1;
  for (std::int64_t j = 0; j < count; ++j) {
    row[j] = row[j] * block.scale + block.slope * static_cast<float>(static_cast<std::int32_t>(j - own));
  }
}

inline void hide_others(const ScoreBlock& block, const Seen& seen, float* row) {
  for (std::int64_t j = 0; j < seen.begin; ++j) row[j] = 0.0f;
  for (std::int64_t j = seen.begin + seen.count; j < block.m; ++j) row[j] = 0.0f;
}

}  // namespace

TESSERA_VECTORISED
void softmax_rows(const ScoreBlock& block, const ScoreDropout& dropout, float* scores, float* logsumexp) {
  for (std::int64_t i = 0; i < block.n; ++i) {
    const Seen seen(block, i);
    float* row = scores + i * block.m + seen.begin;
    const std::int64_t count = seen.count;
    add_bias(block, count, row);
    const float max = lane_max<16>(row, count);
    for (std::int64_t j = 0; j < count; ++j) row[j] = exp_of(row[j] - max);
    const float sum = lane_sum(count, [row](std::int64_t j) { return row[j]; });
    const float inverse = 1.0f / sum;
    if (dropout.probability > 0) {
      const Mask mask(dropout, i);
      for (std::int64_t j = 0; j < count; ++j) row[j] *= inverse * mask(seen.key + j);
    } else {
      for (std::int64_t j = 0; j < count; ++j) row[j] *= inverse;
    }
    hide_others(block, seen, row - seen.begin);
    logsumexp[i] = max + std::log(sum);
  }
}

TESSERA_VECTORISED
void softmax_rows_backward(const ScoreBlock& block, const ScoreDropout& dropout, const float* logsumexp,
                           const float* delta, float* scores, float* grad_probabilities) {
  for (std::int64_t i = 0; i < block.n; ++i) {
    const Seen seen(block, i);
    float* row = scores + i * block.m + seen.begin;
    float* grad = grad_probabilities + i * block.m + seen.begin;
    const std::int64_t count = seen.count;
    const float lse = logsumexp[i], d = delta[i], scale = block.scale;
    add_bias(block, count, row);
    if (dropout.probability > 0) {
      const Mask mask(dropout, i);
#pragma GCC ivdep
      for (std::int64_t j = 0; j < count; ++j) {
        const float p = exp_of(row[j] - lse), kept = mask(seen.key + j);
        row[j] = p * kept;
        grad[j] = p * (grad[j] * kept - d) * scale;
      }
    } else {
#pragma GCC ivdep
      for (std::int64_t j = 0; j < count; ++j) {
        const float p = exp_of(row[j] - lse);
        row[j] = p;
        grad[j] = p * (grad[j] - d) * scale;
      }
    }
    hide_others(block, seen, row - seen.begin);
    hide_others(block, seen, grad - seen.begin);
  }
}

}  // namespace tessera::kernels
