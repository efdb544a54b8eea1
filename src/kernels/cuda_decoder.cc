// The kernels of today's decoders on a GPU: tensors as pointers, strides and the current stream. Compiled only into
// libtessera_cuda.so.
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <initializer_list>

#include "kernels/cuda_kernels.h"
#include "kernels/cuda_tensors.h"

namespace tessera::kernels {
namespace {

// Whether words of 16 bytes can be used: every buffer begins with one, and so does each row, at these strides.
bool in_words(std::initializer_list<const at::Tensor*> tensors, std::initializer_list<std::int64_t> strides) {
  const auto word = static_cast<std::int64_t>(16 / (*tensors.begin())->element_size());
  return std::all_of(tensors.begin(), tensors.end(), [](const auto* tensor) { return is_aligned(in(*tensor)); }) &&
         std::all_of(strides.begin(), strides.end(), [&](std::int64_t stride) { return stride % word == 0; });
}

CudaRmsNorm rms_norm_of(const at::Tensor& x, const RowPlaces& x_rows, const at::Tensor& weight,
                        const at::Tensor& inverse_rms, RmsWeight how) {
  CudaRmsNorm n{};
  n.type = type_of(x);
  n.how = how;
  n.num_rows = x.numel() / x.size(-1);
  n.C = x.size(-1);
  n.x_rows = x_rows;
  n.x = in(x);
  n.weight = in(weight);
  n.inverse_rms = floats(inverse_rms);
  n.stream = stream_of(x);
  return n;
}

CudaGated gated_of(const at::Tensor& gate, const at::Tensor& up, GateActivation activation, const at::Tensor& result) {
  CudaGated g{};
  g.type = type_of(gate);
  g.activation = activation;
  g.T = gate.size(0);
  g.F = gate.size(1);
  g.gate_stride = gate.stride(0);
  g.up_stride = up.stride(0);
  g.gate = in(gate);
  g.up = in(up);
  g.out = out(result);
  g.stream = stream_of(gate);
  return g;
}

}  // namespace

void rms_norm_forward(const at::Tensor& x, const RowPlaces& x_rows, const at::Tensor& residual,
                      const at::Tensor& weight, double eps, RmsWeight how, const at::Tensor& sum,
                      const at::Tensor& result, const at::Tensor& inverse_rms) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto n = rms_norm_of(x, x_rows, weight, inverse_rms, how);
  n.aligned = in_words({&x, &residual, &weight, &sum, &result}, {n.C, x_rows.outer_stride, x_rows.inner_stride});
  n.residual = in(residual);
  n.eps = static_cast<float>(eps);
  n.sum = out(sum);
  n.out = out(result);
  rms_norm_forward_cuda(n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void rms_norm_backward(const at::Tensor& grad, const at::Tensor& grad_sum, const at::Tensor& x, const RowPlaces& x_rows,
                       const at::Tensor& weight, const at::Tensor& inverse_rms, RmsWeight how, const at::Tensor& grad_x,
                       const at::Tensor& grad_weight) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto n = rms_norm_of(x, x_rows, weight, inverse_rms, how);
  n.aligned = in_words({&x, &grad, &grad_sum, &weight, &grad_x}, {n.C, x_rows.outer_stride, x_rows.inner_stride});
  n.grad = in(grad);
  n.grad_sum = in(grad_sum);
  n.grad_x = out(grad_x);
  n.grad_weight = out(grad_weight);
  at::Tensor partial;
  if (grad_weight.defined()) {
    partial = at::empty({num_rms_blocks(n.num_rows) * n.C}, x.options().dtype(at::kFloat));
    n.partial = floats(partial);
  }
  rms_norm_backward_cuda(n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void rotate_heads(const at::Tensor& x, const RotaryTable& table, bool back, const at::Tensor& result) {
  const c10::cuda::CUDAGuard guard(x.device());
  CudaRotary r{};
  r.type = type_of(x);
  r.T = x.size(0);
  r.H = static_cast<int>(x.size(1));
  r.D = static_cast<int>(x.size(2));
  r.half = static_cast<int>(table.cos.size(1));
  r.token_stride = x.stride(0);
  r.head_stride = x.stride(1);
  r.back = back;
  r.aligned = in_words({&x, &table.cos, &table.sin, &result}, {r.D, r.half, r.token_stride, r.head_stride});
  r.x = in(x);
  r.cos = table.cos.const_data_ptr<float>();
  r.sin = table.sin.const_data_ptr<float>();
  r.out = out(result);
  r.stream = stream_of(x);
  rotary_cuda(r);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void gated_forward(const at::Tensor& gate, const at::Tensor& up, GateActivation activation, const at::Tensor& result) {
  const c10::cuda::CUDAGuard guard(gate.device());
  auto g = gated_of(gate, up, activation, result);
  g.aligned = in_words({&gate, &up, &result}, {g.F, g.gate_stride, g.up_stride});
  gated_forward_cuda(g);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void gated_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up, GateActivation activation,
                    const at::Tensor& grad_gate, const at::Tensor& grad_up, const at::Tensor& result) {
  const c10::cuda::CUDAGuard guard(gate.device());
  auto g = gated_of(gate, up, activation, result);
  g.aligned = in_words({&gate, &up, &grad, &grad_gate, &grad_up, &result}, {g.F, g.gate_stride, g.up_stride});
  g.grad = in(grad);
  g.grad_gate = out(grad_gate);
  g.grad_up = out(grad_up);
  gated_backward_cuda(g);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace tessera::kernels
