// The CPU's loops over rows: pointers and sizes, all contiguous. Sums over rows are taken in an order that does not
// depend on the number of threads.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

namespace tessera::kernels {

// One block of attention scores: n queries starting at position `first` against m = first + n keys, row-major; query i
// sees keys 0 to first + i.
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

// Bias + GELU of rows of C elements; `out` may be `x`.
void bias_gelu_forward_cpu(c10::ScalarType type, const void* x, const void* bias, void* out, std::int64_t num_rows,
                           std::int64_t C);

// grad_x = grad * gelu'(x + bias); grad_bias[c] = the sum of grad_x[:, c], added in float32.
void bias_gelu_backward_cpu(c10::ScalarType type, const void* grad, const void* x, const void* bias, void* grad_x,
                            void* grad_bias, std::int64_t num_rows, std::int64_t C);

// Layer-norm; each row's mean and 1 / deviation are float32.
struct LayerNormShape {
  c10::ScalarType type;
  std::int64_t num_rows, C;
};

// With a residual: sum = x + residual, and the norm is of that sum after rounding to its type. Without (null): `sum` is
// not written.
void layer_norm_forward_cpu(const LayerNormShape& shape, const void* x, const void* residual, const void* weight,
                            const void* bias, double eps, void* sum, void* out, float* mean, float* inverse_deviation);

// `x` is what was normalised. `grad_sum` (or null) is added to grad_x.
void layer_norm_backward_cpu(const LayerNormShape& shape, const void* grad, const void* grad_sum, const void* x,
                             const void* weight, const float* mean, const float* inverse_deviation, void* grad_x,
                             void* grad_weight, void* grad_bias);

// flat_buffers.h says what they are.
void block_square_sums_cpu(c10::ScalarType type, const void* values, std::int64_t numel, double* sums);

}  // namespace tessera::kernels
