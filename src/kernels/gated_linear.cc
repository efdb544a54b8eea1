#include "kernels/gated_linear.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include <optional>

#include "kernels/check.h"

namespace tessera::kernels {
namespace {

constexpr const char* kGatedName = "gated_linear";

void check_gated(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weight, const at::Tensor& bias) {
  check_float_type(gate, kGatedName, "gate");
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == gate.scalar_type() && tensor.device() == gate.device();
  };
  check(gate.dim() == 2 && up.sizes() == gate.sizes() && fits(up), kGatedName,
        fmt::format("gate and up alike, [T, F], but got {} and {}", shape_text(gate), shape_text(up)));
  check(weight.dim() == 2 && weight.size(1) == gate.size(1) && fits(weight), kGatedName,
        fmt::format("a weight [C, {}] in the type of gate, {}, but got {}", gate.size(1),
                    c10::toString(gate.scalar_type()), shape_text(weight)));
  check(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0) && fits(bias)), kGatedName,
        fmt::format("a bias [{}] in the type of gate, {}, or none but got {}", weight.size(0),
                    c10::toString(gate.scalar_type()), bias.defined() ? shape_text(bias) : "none"));
}

}  // namespace

at::Tensor gated_linear(const at::Tensor& gate, const at::Tensor& up, const at::Tensor& weight, const at::Tensor& bias,
                        GateActivation activation) {
  check_gated(gate, up, weight, bias);
  const auto wide = gate.to(at::kFloat);
  const auto activated = activation == GateActivation::kSilu ? at::silu(wide) : at::gelu(wide, "tanh");
  return at::linear((activated * up.to(at::kFloat)).to(gate.scalar_type()), weight,
                    bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt);
}

}  // namespace tessera::kernels
