#include "kernels/layer_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/layer_norm_cpu.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Normed {
  at::Tensor sum;  // undefined without a residual
  at::Tensor out;
  at::Tensor mean, inverse_deviation;  // [rows] float32
};

LayerNormShape shape_of(const at::Tensor& x) {
  return {x.scalar_type(), x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), x.size(-1)};
}

const void* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

Normed forward_of(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, const at::Tensor& bias,
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

struct NormGradients {
  at::Tensor x, weight, bias;
};

// `saved`: the normalised input, the weight, mean and 1 / deviation. `grad_sum` may be undefined.
NormGradients backward_of(const variable_list& saved, const at::Tensor& grad, const at::Tensor& grad_sum) {
  const auto &x = saved[0], &weight = saved[1], &mean = saved[2], &deviation = saved[3];
  NormGradients result{at::empty_like(x), at::empty_like(weight), at::empty_like(weight)};
  if (x.numel() == 0) return {result.x, result.weight.zero_(), result.bias.zero_()};
  if (x.is_cuda()) {
    cuda_kernels().layer_norm_backward(grad, grad_sum, x, weight, mean, deviation, result.x, result.weight,
                                       result.bias);
  } else {
    layer_norm_backward_cpu(shape_of(x), grad.const_data_ptr(), data_or_null(grad_sum), x.const_data_ptr(),
                            weight.const_data_ptr(), mean.const_data_ptr<float>(), deviation.const_data_ptr<float>(),
                            result.x.mutable_data_ptr(), result.weight.mutable_data_ptr(),
                            result.bias.mutable_data_ptr());
  }
  return result;
}

class LayerNorm : public torch::autograd::Function<LayerNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, double eps) {
    const auto result = forward_of(x, {}, weight, bias, eps);
    context->save_for_backward({x, weight, result.mean, result.inverse_deviation});
    return result.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto result = backward_of(context->get_saved_variables(), grads[0].contiguous(), {});
    return {result.x, result.weight, result.bias, {}};
  }
};

class ResidualLayerNorm : public torch::autograd::Function<ResidualLayerNorm> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& residual,
                               const at::Tensor& weight, const at::Tensor& bias, double eps) {
    context->set_materialize_grads(false);
    const auto result = forward_of(x, residual, weight, bias, eps);
    context->save_for_backward({result.sum, weight, result.mean, result.inverse_deviation});
    return {result.sum, result.out};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (!grads[1].defined()) return {grads[0], grads[0], {}, {}, {}};
    const auto grad_sum = grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const auto result = backward_of(context->get_saved_variables(), grads[1].contiguous(), grad_sum);
    return {result.x, result.x, result.weight, result.bias, {}};
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
  return LayerNorm::apply(x.contiguous(), weight.contiguous(), bias.contiguous(), eps);
}

std::pair<at::Tensor, at::Tensor> residual_layer_norm(const at::Tensor& x, const at::Tensor& residual,
                                                      const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check_inputs(x, weight, bias, "residual_layer_norm");
  check(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type() && x.device() == residual.device(),
        "residual_layer_norm", fmt::format("a residual like x, {}, but got {}", shape_text(x), shape_text(residual)));
  auto results =
      ResidualLayerNorm::apply(x.contiguous(), residual.contiguous(), weight.contiguous(), bias.contiguous(), eps);
  return {results[0], results[1]};
}

}  // namespace tessera::kernels
