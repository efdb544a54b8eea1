#include "kernels/image_ops.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/sizes.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class FusedBatchNorm : public torch::autograd::Function<FusedBatchNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& residual,
                            const at::Tensor& weight, const at::Tensor& bias, const BatchNorm& norm,
                            BatchNormThen then) {
    BatchNormPass pass{x, weight, bias, residual.value_or(at::Tensor()), then, at::empty_like(x), {}, {}};
    pass.mean = at::empty_like(weight);
    pass.inverse_deviation = at::empty_like(weight);
    cuda_kernels().batch_norm_forward(pass, norm);
    // With an addition the result says where the ReLU let values through; else x does.
    context->save_for_backward({x, weight, bias, pass.mean, pass.inverse_deviation,
                                then == BatchNormThen::kAddRelu ? pass.out : at::Tensor()});
    context->saved_data["then"] = static_cast<std::int64_t>(then);
    return pass.out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto then = static_cast<BatchNormThen>(context->saved_data["then"].toInt());
    const BatchNormPass pass{saved[0], saved[1], saved[2], {}, then, saved[5], saved[3], saved[4]};
    BatchNormGradients result{at::empty_like(pass.x), {}, at::empty_like(pass.weight), at::empty_like(pass.bias)};
    if (then == BatchNormThen::kAddRelu) result.residual = at::empty_like(pass.x);
    cuda_kernels().batch_norm_backward(grads[0].contiguous(at::MemoryFormat::ChannelsLast), pass, result);
    return {result.x, result.residual, result.weight, result.bias, {}, {}};
  }
};

at::Tensor empty_images(at::IntArrayRef sizes, at::TensorOptions options) {
  return at::empty(sizes, options.memory_format(at::MemoryFormat::ChannelsLast));
}

class FusedMaxPool : public torch::autograd::Function<FusedMaxPool> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor out =
        empty_images({x.size(0), x.size(1), pooled_side(x.size(2)), pooled_side(x.size(3))}, x.options());
    const at::Tensor places = empty_images(out.sizes(), x.options().dtype(at::kByte));
    cuda_kernels().max_pool_forward(x, out, places);
    context->save_for_backward({places});
    context->saved_data["sizes"] = x.sizes();
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto places = context->get_saved_variables()[0];
    const at::Tensor grad = grads[0].contiguous(at::MemoryFormat::ChannelsLast);
    at::Tensor grad_x = empty_images(context->saved_data["sizes"].toIntVector(), grad.options());
    cuda_kernels().max_pool_backward(grad, places, grad_x);
    return {grad_x};
  }
};

}  // namespace

bool batch_norm_serves(const at::Tensor& x_BCHW) {
  return is_half_image_on_gpu(x_BCHW) && batch_norm_has_channels(x_BCHW.size(1));
}

at::Tensor batch_norm(const at::Tensor& x, const BatchNorm& norm, BatchNormThen then,
                      std::optional<at::Tensor> residual) {
  check(batch_norm_serves(x), "batch_norm",
        fmt::format("half types, channels-last on a GPU but got {}", shape_text(x)));
  for (const auto* of_channels : {&norm.weight, &norm.bias, &norm.running_mean, &norm.running_var}) {
    if (!of_channels->defined()) continue;
    check(of_channels->dim() == 1 && of_channels->size(0) == x.size(1) && of_channels->scalar_type() == at::kFloat &&
              of_channels->is_contiguous() && of_channels->device() == x.device(),
          "batch_norm", fmt::format("[{}] float32 on x's device but got {}", x.size(1), shape_text(*of_channels)));
  }
  if (residual) {
    check(residual->sizes() == x.sizes() && residual->scalar_type() == x.scalar_type(), "batch_norm",
          fmt::format("a residual like x, {}, but got {}", shape_text(x), shape_text(*residual)));
    residual = residual->contiguous(at::MemoryFormat::ChannelsLast);
  }
  return FusedBatchNorm::apply(x, residual, norm.weight, norm.bias, norm, then);
}

bool max_pool_serves(const at::Tensor& x_BCHW) {
  return is_half_image_on_gpu(x_BCHW) && x_BCHW.size(1) % kMaxPoolPack == 0;
}

at::Tensor max_pool(const at::Tensor& x_BCHW) {
  if (max_pool_serves(x_BCHW)) return FusedMaxPool::apply(x_BCHW);
  return at::max_pool2d(x_BCHW, {3, 3}, {2, 2}, {1, 1});
}

}  // namespace tessera::kernels
