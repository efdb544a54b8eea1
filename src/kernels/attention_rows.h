// The rows of one block of attention scores on the CPU: pointers and sizes.
#pragma once

#include <cstdint>

namespace tessera::kernels {

// n queries from position `first` on against m = first + n keys, row-major; query i sees keys 0 to first + i.
struct ScoreBlock {
  std::int64_t n, m, first;
  float scale;  // of the scores: 1 / sqrt(D)
  float slope;  // ALiBi's, 0 for none
};

// Which probabilities are dropped: a function of the seed, the row and the key alone, so that backward finds the same.
struct ScoreDropout {
  float probability = 0;       // 0: none
  std::uint64_t row_seed = 0;  // the block's first row has this one, the next the next
};

// scores -> probabilities in place (dropped ones 0, the others divided by what is kept); their log-sum-exp by row.
void softmax_rows(const ScoreBlock& block, const ScoreDropout& dropout, float* scores, float* logsumexp);

// scores -> probabilities as softmax_rows gave them; grad_probabilities -> the gradient of q k^T, `delta[i]` being the
// sum of grad_out * out of query i.
void softmax_rows_backward(const ScoreBlock& block, const ScoreDropout& dropout, const float* logsumexp,
                           const float* delta, float* scores, float* grad_probabilities);

}  // namespace tessera::kernels
