// Tensors as the GPU's kernels take them: types, addresses, streams. For libtessera_cuda.so and its tests.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/quantity.h"
#include "kernels/attention.h"
#include "kernels/cuda_launch.h"
#include "kernels/rotary.h"
#include "kernels/transformer_block.h"

namespace tessera::kernels {

inline NumberType type_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return NumberType::kFloat32;
  return tensor.scalar_type() == at::kBFloat16 ? NumberType::kBFloat16 : NumberType::kFloat16;
}

inline cudaStream_t stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index()).stream();
}

// Null for an undefined tensor.
inline const void* in(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}
inline void* out(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}
inline float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

// Parameters may be views anywhere in a flat buffer: words are used only where every buffer starts on a whole word.
inline bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

// Without the addresses of q, k, v and the results.
inline CudaAttention attention_of(const PackedAttention& how, const at::Tensor& like, std::int64_t T, std::int64_t H,
                                  std::int64_t D) {
  CudaAttention a{};
  a.type = type_of(like);
  a.num_heads = a.num_kv_heads = static_cast<int>(H);
  a.window = how.window == 0 ? kNoWindow : static_cast<int>(std::min<std::int64_t>(how.window, kNoWindow));
  a.head_size = static_cast<int>(D);
  a.num_rows = static_cast<int>(how.cu_seqlens.numel()) - 1;
  a.max_length = static_cast<int>(how.max_seqlen);
  a.num_tokens = T;
  a.cu_seqlens = how.cu_seqlens.const_data_ptr<std::int32_t>();
  a.slopes = how.alibi_slopes ? how.alibi_slopes->const_data_ptr<float>() : nullptr;
  a.scale = static_cast<float>(how.scale != 0 ? how.scale : 1.0 / std::sqrt(static_cast<double>(D)));
  a.stream = stream_of(like);
  return a;
}

// Forward. k and v may have fewer heads than q.
inline CudaAttention attention_of(const std::array<at::Tensor, 3>& qkv, const PackedAttention& how,
                                  const at::Tensor& result, const at::Tensor& logsumexp) {
  const at::Tensor& q = qkv[0];
  CudaAttention a = attention_of(how, q, q.size(0), q.size(1), q.size(2));
  a.num_kv_heads = static_cast<int>(qkv[1].size(1));
  for (std::size_t i = 0; i < 3; ++i) {
    a.parts[i] = in(qkv[i]);
    a.token_stride[i] = qkv[i].stride(0);
    a.head_stride[i] = qkv[i].stride(1);
  }
  a.out = out(result);
  a.logsumexp = floats(logsumexp);
  return a;
}

// transformer_block.h's passes on a GPU, for cuda_kernels.h. x and grad: [T, C], contiguous.
// `kept`: what backward needs.
at::Tensor block_forward(const at::Tensor& x, const TransformerBlock& block, const PackedAttention& how,
                         at::Tensor& kept);
// The gradient of x. `gradients`: tensors that those of the parameters are written to; undefined matrices are left out.
at::Tensor block_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& kept,
                          const TransformerBlock& block, const PackedAttention& how, const TransformerBlock& gradients);

// cuda_decoder.cc, for cuda_kernels.h, which says what they do.
void rms_norm_forward(const at::Tensor& x, const RowPlaces& x_rows, const at::Tensor& residual,
                      const at::Tensor& weight, double eps, RmsWeight how, const at::Tensor& sum,
                      const at::Tensor& result, const at::Tensor& inverse_rms);
void rms_norm_backward(const at::Tensor& grad, const at::Tensor& grad_sum, const at::Tensor& x, const RowPlaces& x_rows,
                       const at::Tensor& weight, const at::Tensor& inverse_rms, RmsWeight how, const at::Tensor& grad_x,
                       const at::Tensor& grad_weight);
void rotate_heads(const at::Tensor& x, const RotaryTable& table, bool back, const at::Tensor& result);
void gated_forward(const at::Tensor& gate, const at::Tensor& up, GateActivation activation, const at::Tensor& result);
void gated_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, GateActivation activation,
                    const at::Tensor& grad_gate, const at::Tensor& grad_up, const at::Tensor& result);

// Matrix products in half types by cuBLASLt, with the plan of each shape kept: libtorch describes the matrices and asks
// for an algorithm at every call, which takes the host as long again as the launch. Only in libtessera_cuda.so.
//
// out[m, n] = a[m, k] b[k, n] + bias[n] + plus[m, n], rows contiguous. A transposed factor is stored as [k, m] or
// [n, k].
struct CudaProduct {
  NumberType type;  // bf16 or fp16; sums are float32
  std::int64_t m, n, k;
  const void* a;
  bool a_is_transposed;
  const void* b;
  bool b_is_transposed;
  void* out;
  const void* bias = nullptr;  // null: none
  const void* plus = nullptr;  // null: none; may not be out
};

// On the current device and stream. The same shapes give the same bits, if all addresses are multiples of 16 bytes.
// Throws Error.
void multiply(const CudaProduct& product);

}  // namespace tessera::kernels
