// The rows of one block of attention scores on the CPU, as pointers and sizes.
#pragma once

#include <cstdint>

namespace tessera::kernels {

// n queries starting at position `first` against m = first + n keys, row-major; query i sees keys 0 to first + i.
struct ScoreBlock {
  std::int64_t n, m, first;
  float scale;  // of the scores: 1 / sqrt(D)
  float slope;  // ALiBi's, 0 for none
};

// Which probabilities are dropped: depends only on the seed, the row and the key, so that backward drops the same ones.
struct ScoreDropout {
  float probability = 0;       // 0: none
  std::uint64_t row_seed = 0;  // of the block's first row; each further row adds 1
};

// scores -> probabilities in place (dropped ones 0, the others divided by the kept share); also each row's log-sum-exp.
void softmax_rows(const ScoreBlock& block, const ScoreDropout& dropout, float* scores, float* logsumexp);

// scores -> probabilities as softmax_rows gave them; grad_probabilities -> the gradient of q k^T. `delta[i]` is the sum
// of grad_out * out for query i.
void softmax_rows_backward(const ScoreBlock& block, const ScoreDropout& dropout, const float* logsumexp,
                           const float* delta, float* scores, float* grad_probabilities);

}  // namespace tessera::kernels
