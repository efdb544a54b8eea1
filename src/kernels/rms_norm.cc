#include "kernels/rms_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"
#include "kernels/decoder_passes.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Where the rows of [.., C] begin, if in at most two dimensions; heads of a projection do.
std::optional<RowPlaces> row_places(const at::Tensor& x) {
  const std::int64_t dims = x.dim();
  if (x.is_contiguous()) return RowPlaces{1, x.size(-1), 0};
  if (x.stride(-1) != 1) return {};
  if (dims == 2) return RowPlaces{1, x.stride(0), 0};
  if (dims == 3) return RowPlaces{x.size(1), x.stride(0), x.stride(1)};
  return {};
}

at::Tensor with_row_places(const at::Tensor& x) {
  return row_places(x) ? x : x.contiguous();
}

RmsNormShape rms_shape_of(const at::Tensor& x, RmsWeight how) {
  return {x.scalar_type(), x.numel() / x.size(-1), x.size(-1), row_places(x).value(), how};
}

const void* data_if_any(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

}  // namespace

RmsNormed rms_forward(const at::Tensor& x, const at::Tensor& residual, const at::Tensor& weight, double eps,
                      RmsWeight how) {
  const std::int64_t num_rows = x.numel() == 0 ? 0 : x.numel() / x.size(-1);
  RmsNormed result{{}, at::empty(x.sizes(), x.options()), at::empty({num_rows}, x.options().dtype(at::kFloat))};
  if (residual.defined()) result.sum = at::empty(x.sizes(), x.options());
  if (num_rows == 0) return result;
  const auto shape = rms_shape_of(x, how);
  if (x.is_cuda()) {
    cuda_kernels().rms_norm_forward(x, shape.x_rows, residual, weight, eps, how, result.sum, result.out,
                                    result.inverse_rms);
  } else {
    rms_norm_forward_cpu(shape, x.const_data_ptr(), data_if_any(residual), weight.const_data_ptr(), eps,
                         residual.defined() ? result.sum.mutable_data_ptr() : nullptr, result.out.mutable_data_ptr(),
                         result.inverse_rms.mutable_data_ptr<float>());
  }
  return result;
}

at::Tensor rms_backward(const at::Tensor& grad, const at::Tensor& grad_sum, const at::Tensor& x,
                        const at::Tensor& weight, const at::Tensor& inverse_rms, RmsWeight how,
                        const at::Tensor& grad_weight) {
  at::Tensor grad_x = at::empty(x.sizes(), x.options());
  if (x.numel() == 0) {
    if (grad_weight.defined()) grad_weight.zero_();
    return grad_x;
  }
  const auto shape = rms_shape_of(x, how);
  if (x.is_cuda()) {
    cuda_kernels().rms_norm_backward(grad, grad_sum, x, shape.x_rows, weight, inverse_rms, how, grad_x, grad_weight);
  } else {
    rms_norm_backward_cpu(shape, grad.const_data_ptr(), data_if_any(grad_sum), x.const_data_ptr(),
                          weight.const_data_ptr(), inverse_rms.const_data_ptr<float>(), grad_x.mutable_data_ptr(),
                          grad_weight.defined() ? grad_weight.mutable_data_ptr() : nullptr);
  }
  return grad_x;
}

namespace {

class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  // {x + residual, its norm}, or {the norm of x}.
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const std::optional<at::Tensor>& residual,
                               const at::Tensor& weight, double eps, RmsWeight how) {
    context->set_materialize_grads(false);
    const auto result = rms_forward(x, residual.value_or(at::Tensor()), weight, eps, how);
    context->save_for_backward({residual ? result.sum : x, weight, result.inverse_rms});
    context->saved_data["how"] = static_cast<std::int64_t>(how);
    if (!residual) return {result.out};
    return {result.sum, result.out};
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const bool has_residual = grads.size() == 2;
    if (!grads.back().defined()) return {grads[0], grads[0], {}, {}, {}};  // the sum alone was used
    const auto grad_sum = has_residual && grads[0].defined() ? grads[0].contiguous() : at::Tensor();
    const auto saved = context->get_saved_variables();
    const auto how = static_cast<RmsWeight>(context->saved_data["how"].toInt());
    const bool wants_weight = context->needs_input_grad(has_residual ? 2 : 1);
    const at::Tensor grad_weight = wants_weight ? at::empty_like(saved[1]) : at::Tensor();
    const at::Tensor grad_x =
        rms_backward(grads.back().contiguous(), grad_sum, saved[0], saved[1], saved[2], how, grad_weight);
    return {grad_x, has_residual ? grad_x : at::Tensor(), grad_weight, {}, {}};
  }
};

void check_rms_inputs(const at::Tensor& x, const at::Tensor& weight, const char* name) {
  check_float_type(x, name, "x");
  check_row(x, weight, name, "a weight");
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, RmsWeight how) {
  check_rms_inputs(x, weight, "rms_norm");
  return RmsNorm::apply(with_row_places(x), std::optional<at::Tensor>(), weight.contiguous(), eps, how)[0];
}

std::pair<at::Tensor, at::Tensor> residual_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                                                    const at::Tensor& weight, double eps, RmsWeight how) {
  constexpr const char* kName = "residual_rms_norm";
  check_rms_inputs(x, weight, kName);
  check(x.sizes() == residual.sizes() && x.scalar_type() == residual.scalar_type() && x.device() == residual.device(),
        kName, fmt::format("a residual like x, {}, but got {}", shape_text(x), shape_text(residual)));
  auto results =
      RmsNorm::apply(x.contiguous(), std::optional<at::Tensor>(residual.contiguous()), weight.contiguous(), eps, how);
  return {results[0], results[1]};
}

}  // namespace tessera::kernels
