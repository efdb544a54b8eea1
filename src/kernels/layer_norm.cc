#include "kernels/layer_norm.h"

#include <ATen/ops/layer_norm.h>

#include "kernels/check.h"

namespace tessera::kernels {

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check_float_type(x, "layer_norm", "x");
  check_row(x, weight, "layer_norm", "a weight");
  check_row(x, bias, "layer_norm", "a bias");
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

std::pair<at::Tensor, at::Tensor> residual_layer_norm(const at::Tensor& x, const at::Tensor& residual,
                                                      const at::Tensor& weight, const at::Tensor& bias, double eps) {
  check(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type() && x.device() == residual.device(),
        "residual_layer_norm", fmt::format("a residual like x, {}, but got {}", shape_text(x), shape_text(residual)));
  auto sum = x + residual;
  return {sum, layer_norm(sum, weight, bias, eps)};
}

}  // namespace tessera::kernels
