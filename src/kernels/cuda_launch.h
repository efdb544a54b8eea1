// The GPU's kernels: pointers, sizes and a stream. No tensors here: these files compile in seconds. All buffers are
// contiguous; `partial` is room of the caller's, in floats, as each function says. A launch that fails is found by the
// caller's check of the last CUDA error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/quantity.h"
#include "kernels/sizes.h"

namespace tessera::kernels {

struct CudaRows {
  NumberType type;
  std::int64_t num_rows, C;
  bool aligned;  // every buffer begins at a multiple of 16 bytes
  cudaStream_t stream;
};

// row_sums.cu: sums [C] over the rows of x; partial: one sum
void column_sums_cuda(const CudaRows& rows, const void* x, void* sums, float* partial);

// bias_gelu.cu; grad_x may be grad, and `out`, the GELU's result, may be null; partial: one sum
void bias_gelu_forward_cuda(const CudaRows& rows, const void* x, const void* bias, void* out);
void bias_gelu_backward_cuda(const CudaRows& rows, const void* grad, const void* x, const void* bias, void* grad_x,
                             void* out, void* grad_bias, float* partial);

// layer_norm.cu; residual and sum may be null
void layer_norm_forward_cuda(const CudaRows& rows, const void* x, const void* residual, const void* weight,
                             const void* bias, float eps, void* sum, void* out, float* mean, float* inverse_deviation);
// partial: two sums, four with grad_sums and grad_x_sums
struct CudaNormBackward {
  const void *grad, *grad_sum, *x, *weight, *bias;  // grad_sum, added to grad_x, may be null
  const float *mean, *inverse_deviation;
  void *grad_x, *grad_weight, *grad_bias;
  void* out;        // the norm's result again; may be null
  void* grad_sums;  // sums over the rows of grad_sum and grad_x; both null, or neither
  void* grad_x_sums;
  float* partial;
};
void layer_norm_backward_cuda(const CudaRows& rows, const CudaNormBackward& norm);

// rms_norm.cu: row r of x begins at x_rows.at(r), all else is contiguous
struct CudaRmsNorm {
  NumberType type;
  RmsWeight how;
  std::int64_t num_rows, C;
  RowPlaces x_rows;
  bool aligned;  // every buffer, and every row of x, begins at a multiple of 16 bytes if C fills whole words
  const void *x, *weight;
  float* inverse_rms;
  // forward alone; residual and sum may be null
  const void* residual;
  float eps;
  void *sum, *out;
  // backward alone; grad_sum, added to grad_x, and grad_weight may be null
  const void *grad, *grad_sum;
  void *grad_x, *grad_weight;
  float* partial;  // num_rms_blocks * C, if there is grad_weight
  cudaStream_t stream;
};
void rms_norm_forward_cuda(const CudaRmsNorm& norm);
void rms_norm_backward_cuda(const CudaRmsNorm& norm);

// rotary.cu: x [T, H, D] at these strides, in numbers, the last dimension dense; out is contiguous
struct CudaRotary {
  NumberType type;
  std::int64_t T;
  int H, D, half;  // 2 * half numbers of each head are rotated
  std::int64_t token_stride, head_stride;
  bool back;     // by the opposite angles
  bool aligned;  // every buffer, and every head of x, begins at a multiple of 16 bytes if D fills whole words
  const void* x;
  const float *cos, *sin;  // [T, half]
  void* out;
  cudaStream_t stream;
};
void rotary_cuda(const CudaRotary& rotary);

// gated.cu: rows of gate and up begin at multiples of their strides, all else is contiguous
struct CudaGated {
  NumberType type;
  GateActivation activation;
  std::int64_t T, F;
  std::int64_t gate_stride, up_stride;
  bool aligned;  // every buffer, and every row, begins at a multiple of 16 bytes if F fills whole words
  const void *gate, *up;
  void* out;  // null in backward: not wanted
  // backward alone; grad_gate may be grad
  const void* grad;
  void *grad_gate, *grad_up;
  cudaStream_t stream;
};
void gated_forward_cuda(const CudaGated& gated);
void gated_backward_cuda(const CudaGated& gated);

// batch_norm.cu: bf16 or fp16, [num_rows, C]; sizes.h has the channels
struct CudaBatchNorm {
  NumberType type;
  BatchNormThen then;
  std::int64_t num_rows;
  int C, num_blocks;
  const void *x, *residual;
  const float *weight, *bias;
  void* out;
  float *mean, *inverse_deviation;
  // forward alone
  float epsilon, momentum;
  float *running_mean, *running_var;  // null: none
  // backward alone
  const void* grad;
  void *grad_x, *grad_residual;
  float *grad_weight, *grad_bias;
  float* partial;  // 2 * num_blocks * C
  cudaStream_t stream;
};
void batch_norm_forward_cuda(const CudaBatchNorm& norm);
void batch_norm_backward_cuda(const CudaBatchNorm& norm);

// max_pool.cu: bf16 or fp16, channels-last; sizes.h has the channels and the sides
struct CudaMaxPool {
  NumberType type;
  std::int64_t num_images;
  int C, H, W, pooled_H, pooled_W;
  const void* x;
  void* out;
  std::uint8_t* places;  // like out: which of its window's nine values it is
  // backward alone
  const void* grad;
  void* grad_x;
  cudaStream_t stream;
};
void max_pool_forward_cuda(const CudaMaxPool& pool);
void max_pool_backward_cuda(const CudaMaxPool& pool);

// cross_entropy.cu: rows.C is the number of classes; partial: num_rows (the rows' losses); adds their sum to *sum
void cross_entropy_cuda(const CudaRows& rows, void* logits, const std::int64_t* targets, float on_target,
                        float on_every, float gradient_scale, bool to_gradient, float* sum, float* partial);

// row_sums.cu: rows.num_rows values of C numbers, in the order of `order`, which sorts `ids`, go to rows of the table
void add_rows_cuda(const CudaRows& rows, const std::int64_t* ids, const std::int64_t* order, const void* values,
                   void* table);

// attention.cu: bf16 or fp16; sizes.h has the head sizes. Addresses and strides are multiples of 16 bytes.
inline constexpr int kNoWindow = 1 << 30;
struct CudaAttention {
  NumberType type;
  int num_heads, num_kv_heads, head_size, num_rows, max_length;
  int window;  // a query sees itself and the window - 1 tokens before it; kNoWindow: all
  std::int64_t num_tokens;
  const std::int32_t* cu_seqlens;  // [num_rows + 1]
  const float* slopes;             // null: no ALiBi
  float scale;                     // of the products of q and k
  const void* parts[3];            // q: [T, num_heads, D]; k, v: [T, num_kv_heads, D], with these strides, in numbers
  std::int64_t token_stride[3], head_stride[3];
  void* out;         // [T, H, D]
  float* logsumexp;  // [T, H], to the base 2
  // backward alone
  const void* grad;     // of out
  float* delta;         // [T, H] scratch
  void* grad_parts[3];  // with the strides of the parts
  cudaStream_t stream;
};
void attention_forward_cuda(const CudaAttention& attention);
void attention_backward_cuda(const CudaAttention& attention);

// widen_heads.cu: heads of q, k and v copied into wider ones, ALiBi's numbers behind them (attention_gpu.cc), then
// zeros
struct WidenHeads {
  const void* from[3];  // q, k, v: [T, H, D], the last dimension dense
  std::int64_t token_stride[3], head_stride[3];
  void* to[3];  // [T, H, wide]
  int num_heads, D, wide;
  const std::int32_t* cu_seqlens;
  int num_sequences;
  const float* slopes;  // null: zeros alone
  float in_q;           // ALiBi's number in q
  float factor;         // of slope * position in k
};
void widen_heads_cuda(NumberType type, const WidenHeads& heads, std::int64_t num_tokens, cudaStream_t stream);

// flat_buffers.cu: end_block is the function's own
inline constexpr int kMostParts = 32;
struct CudaParts {
  const void* from[kMostParts];
  std::int64_t offset[kMostParts], numel[kMostParts];
  bool adds[kMostParts];
  unsigned end_block[kMostParts];
};
void put_parts_cuda(NumberType from, NumberType to, CudaParts parts, int num_parts, void* flat, cudaStream_t stream);
// flat_buffers.cu
void block_square_sums_cuda(NumberType type, const void* values, std::int64_t numel, std::int64_t block_numel,
                            double* sums, cudaStream_t stream);
// sums: [num_parts, width]; begins: [num_units + 1]; of_units: [num_units] scratch; total: [1 + num_parts]
void add_units_cuda(const double* sums, std::int64_t num_parts, std::int64_t width, const std::int64_t* begins,
                    std::int64_t num_units, double* of_units, double* total, cudaStream_t stream);

}  // namespace tessera::kernels
