#include "kernels/max_pool.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/max_pool_sizes.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

bool max_pool_serves(const at::Tensor& x_BCHW) {
  return is_half_image_on_gpu(x_BCHW) && x_BCHW.size(1) % kMaxPoolPack == 0;
}

at::Tensor max_pool(const at::Tensor& x_BCHW) {
  if (max_pool_serves(x_BCHW)) return FusedMaxPool::apply(x_BCHW);
  return at::max_pool2d(x_BCHW, {3, 3}, {2, 2}, {1, 1});
}

}  // namespace tessera::kernels
