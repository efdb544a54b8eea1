#include "kernels/layer_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

LayerNormShape shape_of(const at::Tensor& x) {
  return {x.scalar_type(), x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), x.size(-1)};
}

const void* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

struct Normed {
  at::Tensor sum;  // x + residual; undefined without a residual
  at::Tensor out;
  at::Tensor mean, inverse_deviation;  // [rows] float32
};

Normed norm_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, const at::Tensor& bias,
                    double eps) {
  const auto shape = shape_of(x);
  const auto statistics = x.options().dtype(at::kFloat);
  Normed result{
      {}, at::empty_like(x), at::empty({shape.num_rows}, statistics), at::empty({shape.num_rows}, statistics)};
  if (residual.defined()) result.sum = at::empty_like(x);
  if (x.numel() == 0) return result;
  if (x.is_cuda()) {
    cuda_kernels().layer_norm_forward(x, residual, weight, bias, eps, result.sum, result.out, result.mean,
                                      result.inverse_deviation);
  } else {
    layer_norm_forward_cpu(shape, x.const_data_ptr(), data_or_null(residual), weight.const_data_ptr(),
                           bias.const_data_ptr(), eps, residual.defined() ? result.sum.mutable_data_ptr() : nullptr,
                           result.out.mutable_data_ptr(), result.mean.mutable_data_ptr<float>(),
                           result.inverse_deviation.mutable_data_ptr<float>());
  }
  return result;
}

NormGradients norm_backward(const NormBackward& norm) {
  const at::Tensor &x = norm.x, &weight = norm.weight;
  NormGradients result{at::empty_like(x), at::empty_like(weight), at::empty_like(weight)};
  if (x.numel() == 0) {
    result.weight.zero_();
    result.bias.zero_();
  } else if (x.is_cuda()) {
    cuda_kernels().layer_norm_backward(norm, result);
  } else {
    layer_norm_backward_cpu(shape_of(x), norm.grad.const_data_ptr(), data_or_null(norm.grad_sum), x.const_data_ptr(),
                            weight.const_data_ptr(), norm.mean.const_data_ptr<float>(),
                            norm.inverse_deviation.const_data_ptr<float>(), result.x.mutable_data_ptr(),
                            result.weight.mutable_data_ptr(), result.bias.mutable_data_ptr());
  }
  return result;
}

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  // {x + residual, its norm}, or {the norm of x}.
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& residual,
                               const at::Tensor& weight, const at::Tensor& bias, double eps) {
    context->set_materialize_grads(false);
    const auto result = norm_forward(x, residual.value_or(at::Tensor()), weight, bias, eps);
    context->save_for_backward({residual ? result.sum : x, weight, result.mean, result.inverse_deviation});
    if (!residual) return {result.out};
    return {result.sum, result.out};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const bool has_residual = grads.size() == 2;
    if (!grads.back().defined()) return {grads[0], grads[0], {}, {}, {}};  // the sum alone was used
    const auto grad_sum = has_residual && grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const auto saved = context->get_saved_variables();
    const auto result = norm_backward({grads.back().contiguous(), grad_sum, saved[0], saved[1], saved[2], saved[3]});
    return {result.x, has_residual ? result.x : at::Tensor(), result.weight, result.bias, {}};
  }
};

void check_inputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const char* name) {
  check_float_type(x, name, "x");
  check_row(x, weight, name, "a weight");
  check_row(x, bias, name, "a bias");
}

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check_inputs(x, weight, bias, "layer_norm");
  return LayerNorm::apply(x.contiguous(), std::optional<at::Tensor>(), weight.contiguous(), bias.contiguous(), eps)[0];
}

std::pair<at::Tensor, at::Tensor> residual_layer_norm(const at::Tensor& x, const at::Tensor& residual,
                                                      const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check_inputs(x, weight, bias, "residual_layer_norm");
  check(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type() && x.device() == residual.device(),
        "residual_layer_norm", fmt::format("a residual like x, {}, but got {}", shape_text(x), shape_text(residual)));
  auto results = LayerNorm::apply(x.contiguous(), std::optional<at::Tensor>(residual.contiguous()), weight.contiguous(),
                                  bias.contiguous(), eps);
  return {results[0], results[1]};
}

}  // namespace tessera::kernels
