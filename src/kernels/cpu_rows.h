// The CPU's loops over rows: pointers and sizes, all contiguous. Sums over rows are taken in an order that does not
// depend on the number of threads.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>

#include "kernels/sizes.h"

namespace tessera::kernels {

// One block of attention scores: n queries starting at position `first` against the m = first + n - first_key keys from
// first_key on, row-major; query i sees the keys up to first + i, with a window only the last `window` of them.
struct ScoreBlock {
  std::int64_t n, m, first;
  float scale;  // of the scores
  float slope;  // ALiBi's, 0 for none
  std::int64_t window = 0, first_key = 0;
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

// RMS norm, rms_norm.h. Row r of x begins at x_rows.at(r); all else is contiguous.
struct RmsNormShape {
  c10::ScalarType type;
  std::int64_t num_rows, C;
  RowPlaces x_rows;
  RmsWeight how;
};

// With a residual: sum = x + residual, and the norm is of that sum after rounding to its type. Without (null): `sum` is
// not written.
void rms_norm_forward_cpu(const RmsNormShape& shape, const void* x, const void* residual, const void* weight,
                          double eps, void* sum, void* out, float* inverse_rms);

// `x` is what was normalised. `grad_sum` (or null) is added to grad_x; grad_weight may be null.
void rms_norm_backward_cpu(const RmsNormShape& shape, const void* grad, const void* grad_sum, const void* x,
                           const void* weight, const float* inverse_rms, void* grad_x, void* grad_weight);

// Rotary embedding, rotary.h: T tokens of H heads of D numbers. `out` is contiguous; back: by the opposite angles.
struct RotaryShape {
  c10::ScalarType type;
  std::int64_t T, H, D, half;
  std::int64_t token_stride, head_stride;  // of x
  bool back;
};
void rotary_cpu(const RotaryShape& shape, const void* x, const float* cos, const float* sin, void* out);

// Gated activation, gated_linear.h: rows of F numbers, which begin at multiples of the strides; all else is contiguous.
struct GatedShape {
  c10::ScalarType type;
  std::int64_t T, F;
  std::int64_t gate_stride, up_stride;
  GateActivation activation;
};
void gated_forward_cpu(const GatedShape& shape, const void* gate, const void* up, void* out);

// `out`, forward's result again, may be null. grad_gate may be grad.
void gated_backward_cpu(const GatedShape& shape, const void* grad, const void* gate, const void* up, void* grad_gate,
                        void* grad_up, void* out);

// flat_buffers.h says what they are.
void block_square_sums_cpu(c10::ScalarType type, const void* values, std::int64_t numel, double* sums);

}  // namespace tessera::kernels
