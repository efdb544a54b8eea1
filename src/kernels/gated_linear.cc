#include "kernels/gated_linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"
#include "kernels/decoder_passes.h"
#include "kernels/row_sums.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr const char* kGatedName = "gated_linear";

GatedShape gated_shape_of(const at::Tensor& gate, const at::Tensor& up, GateActivation activation) {
  return {gate.scalar_type(), gate.size(0), gate.size(1), gate.stride(0), up.stride(0), activation};
}

}  // namespace

at::Tensor gated_product(const at::Tensor& gate, const at::Tensor& up, GateActivation activation) {
  auto out = at::empty(gate.sizes(), gate.options());
  if (gate.numel() == 0) return out;
  if (gate.is_cuda()) {
    cuda_kernels().gated_forward(gate, up, activation, out);
  } else {
    gated_forward_cpu(gated_shape_of(gate, up, activation), gate.const_data_ptr(), up.const_data_ptr(),
                      out.mutable_data_ptr());
  }
  return out;
}

GatedGradients gated_product_backward(const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up,
                                      GateActivation activation, bool wants_product) {
  GatedGradients result{grad, at::empty(up.sizes(), up.options()), {}};
  if (wants_product) result.product = at::empty(gate.sizes(), gate.options());
  if (gate.numel() == 0) return result;
  if (gate.is_cuda()) {
    cuda_kernels().gated_backward(grad, gate, up, activation, result.gate, result.up, result.product);
  } else {
    gated_backward_cpu(gated_shape_of(gate, up, activation), grad.const_data_ptr(), gate.const_data_ptr(),
                       up.const_data_ptr(), result.gate.mutable_data_ptr(), result.up.mutable_data_ptr(),
                       wants_product ? result.product.mutable_data_ptr() : nullptr);
  }
  return result;
}

namespace {

class GatedLinear : public torch::autograd::Function<GatedLinear> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up,
                            const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            GateActivation activation) {
    context->save_for_backward({gate, up, weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["activation"] = static_cast<std::int64_t>(activation);
    return at::linear(gated_product(gate, up, activation), weight, bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    constexpr std::size_t kGate = 0, kUp = 1, kWeight = 2, kBias = 3;
    const auto needs = [&](std::size_t i) { return context->needs_input_grad(i); };
    const auto saved = context->get_saved_variables();
    const auto &gate = saved[0], &up = saved[1], &weight = saved[2];
    const auto activation = static_cast<GateActivation>(context->saved_data["activation"].toInt());
    at::Tensor grad_weight, grad_bias;
    if (context->saved_data["has_bias"].toBool() && needs(kBias)) grad_bias = column_sums(grads[0]);
    GatedGradients inner;
    if (needs(kGate) || needs(kUp)) {
      inner = gated_product_backward(grads[0].mm(weight), gate, up, activation, needs(kWeight));
    } else if (needs(kWeight)) {
      inner.product = gated_product(gate, up, activation);
    }
    if (needs(kWeight)) grad_weight = grads[0].t().mm(inner.product);
    return {inner.gate, inner.up, grad_weight, grad_bias, {}};
  }
};

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
  const auto with_dense_rows = [](const at::Tensor& x) { return x.stride(1) == 1 ? x : x.contiguous(); };
  return GatedLinear::apply(with_dense_rows(gate), with_dense_rows(up), weight,
                            bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt, activation);
}

}  // namespace tessera::kernels
