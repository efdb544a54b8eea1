#include "kernels/rms_norm.h"

#include <ATen/ops/rsqrt.h>

#include "kernels/check.h"

namespace tessera::kernels {
namespace {

void check_rms_inputs(const at::Tensor& x, const at::Tensor& weight, const char* name) {
  check_float_type(x, name, "x");
  check_row(x, weight, name, "a weight");
}

at::Tensor rms_by_operators(const at::Tensor& x, const at::Tensor& weight, double eps, RmsWeight how) {
  const auto wide = x.to(at::kFloat);
  const auto normed = wide * at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps);
  if (how == RmsWeight::kAfterRounding) return normed.to(x.scalar_type()) * weight;
  const auto factor = weight.to(at::kFloat);
  return (normed * (how == RmsWeight::kOnePlus ? factor + 1 : factor)).to(x.scalar_type());
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, RmsWeight how) {
  check_rms_inputs(x, weight, "rms_norm");
  return rms_by_operators(x.contiguous(), weight, eps, how);
}

std::pair<at::Tensor, at::Tensor> residual_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                    const at::Tensor& weight, double eps, RmsWeight how) {
  constexpr const char* kName = "residual_rms_norm";
  check_rms_inputs(x, weight, kName);
  check(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type() && x.device() == residual.device(),
        kName, fmt::format("a residual like x, {}, but got {}", shape_text(x), shape_text(residual)));
  const auto sum = (x + residual).contiguous();
  return {sum, rms_by_operators(sum, weight, eps, how)};
}

}  // namespace tessera::kernels
