#include "kernels/bias_gelu.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"
#include "kernels/row_sums.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor gelu_forward(const at::Tensor& x, const at::Tensor& bias) {
  auto out = at::empty_like(x);
  if (x.numel() == 0) return out;
  if (x.is_cuda()) {
    cuda_kernels().bias_gelu_forward(x, bias, out);
  } else {
    bias_gelu_forward_cpu(x.scalar_type(), x.const_data_ptr(), bias.const_data_ptr(), out.mutable_data_ptr(),
                          x.numel() / bias.numel(), bias.numel());
  }
  return out;
}

// The gradients of x and bias.
std::pair<at::Tensor, at::Tensor> gelu_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& bias) {
  at::Tensor grad_x = at::empty_like(x), grad_bias = at::empty_like(bias);
  if (x.numel() == 0) {
    grad_bias.zero_();
  } else if (x.is_cuda()) {
    cuda_kernels().bias_gelu_backward(grad, x, bias, grad_x, grad_bias);
  } else {
    bias_gelu_backward_cpu(x.scalar_type(), grad.const_data_ptr(), x.const_data_ptr(), bias.const_data_ptr(),
                           grad_x.mutable_data_ptr(), grad_bias.mutable_data_ptr(), x.numel() / bias.numel(),
                           bias.numel());
  }
  return {grad_x, grad_bias};
}

class BiasGeluLinear : public torch::autograd::Function<BiasGeluLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& bias,
                            const at::Tensor& weight, const at::Tensor& out_bias) {
    context->save_for_backward({x, bias, weight});
    return at::linear(gelu_forward(x, bias), weight, out_bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    constexpr std::size_t kWeight = 2, kOutBias = 3;
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &bias = saved[1], &weight = saved[2];
    const at::Tensor grad = grads[0].reshape({-1, weight.size(0)});
    at::Tensor grad_weight, grad_out_bias;
    const at::Tensor grad_inner = grad.mm(weight);
    if (context->needs_input_grad(kWeight)) {
      grad_weight = grad.t().mm(gelu_forward(x, bias).view({-1, weight.size(1)}));
    }
    if (context->needs_input_grad(kOutBias)) grad_out_bias = column_sums(grad);
    const auto [grad_x, grad_bias] = gelu_backward(grad_inner, x, bias);
    return {grad_x, grad_bias, grad_weight, grad_out_bias};
  }
};

}  // namespace

at::Tensor bias_gelu_linear(const at::Tensor& x, const at::Tensor& bias, const at::Tensor& weight,
                            const at::Tensor& out_bias) {
  constexpr const char* kName = "bias_gelu_linear";
  check_float_type(x, kName, "x");
  check_row(x, bias, kName, "a bias");
  check(
      weight.dim() == 2 && weight.size(1) == bias.numel() && out_bias.dim() == 1 && out_bias.size(0) == weight.size(0),
      kName,
      fmt::format("a weight [K, {}] and its bias [K] but got {} and {}", bias.numel(), shape_text(weight),
                  shape_text(out_bias)));
  return BiasGeluLinear::apply(x.contiguous(), bias.contiguous(), weight, out_bias);
}

}  // namespace tessera::kernels
