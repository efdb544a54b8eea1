#include "kernels/bias_gelu.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/bias_gelu_cpu.h"
#include "kernels/check.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor forward_of(const at::Tensor& x, const at::Tensor& bias) {
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

class BiasGelu : public torch::autograd::Function<BiasGelu> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& bias) {
    context->save_for_backward({x, bias});
    return forward_of(x, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &bias = saved[1];
    const auto grad = grads[0].contiguous();
    auto grad_x = at::empty_like(x);
    auto grad_bias = at::empty_like(bias);
    if (x.numel() == 0) return {grad_x, grad_bias.zero_()};
    if (x.is_cuda()) {
      cuda_kernels().bias_gelu_backward(grad, x, bias, grad_x, grad_bias);
    } else {
      bias_gelu_backward_cpu(x.scalar_type(), grad.const_data_ptr(), x.const_data_ptr(), bias.const_data_ptr(),
                             grad_x.mutable_data_ptr(), grad_bias.mutable_data_ptr(), x.numel() / bias.numel(),
                             bias.numel());
    }
    return {grad_x, grad_bias};
  }
};

}  // namespace

at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias) {
  check_float_type(x, "bias_gelu", "x");
  check_row(x, bias, "bias_gelu", "a bias");
  return BiasGelu::apply(x.contiguous(), bias.contiguous());
}

}  // namespace tessera::kernels
