// The GPU's kernels as the CPU library sees them: a table that libtessera_cuda.so fills when it is loaded, which is
// before any CUDA tensor exists (comm/gpu_support.h). All run on the current stream of the tensors' device.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "kernels/flat_buffers.h"
#include "kernels/image_ops.h"
#include "kernels/layer_norm.h"
#include "kernels/optimizers/flat_update.h"
#include "kernels/rotary.h"
#include "kernels/sizes.h"
#include "kernels/transformer_block.h"

namespace tessera::kernels {

struct CudaKernels {
  // bias_gelu.h
  void (*bias_gelu_forward)(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& out);
  void (*bias_gelu_backward)(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& bias,
                             const at::Tensor& grad_x, const at::Tensor& grad_bias);
  // layer_norm.h; residual and sum may be undefined
  void (*layer_norm_forward)(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight,
                             const at::Tensor& bias, double eps, const at::Tensor& sum, const at::Tensor& out,
                             const at::Tensor& mean, const at::Tensor& inverse_deviation);
  void (*layer_norm_backward)(const NormBackward& norm, const NormGradients& results);
  // rms_norm.h; x's rows lie at x_rows, all else is contiguous; residual, sum, grad_sum and grad_weight may be
  // undefined
  void (*rms_norm_forward)(const at::Tensor& x, const RowPlaces& x_rows, const at::Tensor& residual,
                           const at::Tensor& weight, double eps, RmsWeight how, const at::Tensor& sum,
                           const at::Tensor& out, const at::Tensor& inverse_rms);
  void (*rms_norm_backward)(const at::Tensor& grad, const at::Tensor& grad_sum, const at::Tensor& x,
                            const RowPlaces& x_rows, const at::Tensor& weight, const at::Tensor& inverse_rms,
                            RmsWeight how, const at::Tensor& grad_x, const at::Tensor& grad_weight);
  // rotary.h; x: heads anywhere, the last dimension dense; back: by the opposite angles
  void (*rotary)(const at::Tensor& x, const RotaryTable& table, bool back, const at::Tensor& out);
  // gated_linear.h; rows of gate and up anywhere; grad_gate may be grad, and `out`, forward's result, undefined
  void (*gated_forward)(const at::Tensor& gate, const at::Tensor& up, GateActivation activation, const at::Tensor& out);
  void (*gated_backward)(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up,
                         GateActivation activation, const at::Tensor& grad_gate, const at::Tensor& grad_up,
                         const at::Tensor& out);
  // image_ops.h
  void (*batch_norm_forward)(const BatchNormPass& pass, const BatchNorm& norm);
  void (*batch_norm_backward)(const at::Tensor& grad, const BatchNormPass& pass, const BatchNormGradients& results);
  // places: like out, bytes
  void (*max_pool_forward)(const at::Tensor& x, const at::Tensor& out, const at::Tensor& places);
  void (*max_pool_backward)(const at::Tensor& grad, const at::Tensor& places, const at::Tensor& grad_x);
  // row_sums.h
  void (*column_sums)(const at::Tensor& x, const at::Tensor& sums);
  // linear_cross_entropy.h
  void (*cross_entropy_rows)(const at::Tensor& logits, const at::Tensor& targets, float on_target, float on_every,
                             float gradient_scale, bool to_gradient, const at::Tensor& sum);
  // ids [n], sorted; row order[i] of values [n, C] goes to row ids[i]
  void (*add_rows)(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& order, const at::Tensor& values);
  // attention_paths.h: attention.cu's; {q, k, v} are parts of one tensor, and so are their gradients
  bool (*is_ampere)(at::Device device);  // or newer: can run it, and FlashAttention
  void (*attention_forward)(const std::array<at::Tensor, 3>& qkv, const PackedAttention& how, const at::Tensor& out,
                            const at::Tensor& logsumexp);
  void (*attention_backward)(const at::Tensor& grad, const std::array<at::Tensor, 3>& qkv, const PackedAttention& how,
                             const at::Tensor& out, const at::Tensor& logsumexp,
                             const std::array<at::Tensor, 3>& grad_qkv);
  // cuda_tensors.h
  at::Tensor (*block_forward)(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how,
                              at::Tensor& kept);
  at::Tensor (*block_backward)(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& kept,
                               const TransformerBlock& block, const PackedAttention& how,
                               const TransformerBlock& gradients);
  // attention_paths.h: {q, k, v} widened to head size `wide`, with ALiBi's parts after the first D where there are
  // slopes
  std::array<at::Tensor, 3> (*widen_heads)(const std::array<at::Tensor, 3>& qkv, std::int64_t wide,
                                           const at::Tensor& cu_seqlens, const at::Tensor& slopes, float in_q,
                                           float factor);
  // optimizers/flat_update.h: on the current stream of params' device
  void (*flat_update)(const at::Tensor& params, FlatUpdate flat, FlatUpdateFunction update, const void* constants);
  // flat_buffers.h: all contiguous and of one type
  void (*put_parts)(const at::Tensor& flat, const std::vector<FlatPart>& parts);
  void (*block_square_sums)(const at::Tensor& values, const at::Tensor& sums);
  at::Tensor (*add_units)(const at::Tensor& sums, const at::Tensor& begins);
};

// Throws Error if libtessera_cuda.so has not been loaded.
const CudaKernels& cuda_kernels();
void register_cuda_kernels(const CudaKernels& kernels);

}  // namespace tessera::kernels
