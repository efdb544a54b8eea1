#include "kernels/rotary.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// back: by the opposite angles.
at::Tensor rotated(const at::Tensor& input, const RotaryTable& table, bool back) {
  const auto x = input.stride(2) == 1 ? input : input.contiguous();
  auto out = at::empty(x.sizes(), x.options());
  if (x.numel() == 0) return out;
  if (x.is_cuda()) {
    cuda_kernels().rotary(x, table, back, out);
  } else {
    rotary_cpu({x.scalar_type(), x.size(0), x.size(1), x.size(2), table.cos.size(1), x.stride(0), x.stride(1), back},
               x.const_data_ptr(), table.cos.const_data_ptr<float>(), table.sin.const_data_ptr<float>(),
               out.mutable_data_ptr());
  }
  return out;
}

class Rotary : public torch::autograd::Function<Rotary> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotated(x, {cos, sin}, /*back=*/false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    return {rotated(grads[0], {saved[0], saved[1]}, /*back=*/true), {}, {}};
  }
};

}  // namespace

at::Tensor rotary(const at::Tensor& x, const RotaryTable& table) {
  constexpr const char* kName = "rotary";
  check_float_type(x, kName, "x");
  check(x.dim() == 3, kName, fmt::format("x as [tokens, heads, head size] but got {}", shape_text(x)));
  for (const auto* part : {&table.cos, &table.sin}) {
    check(part->defined() && part->dim() == 2 && part->size(0) == x.size(0) && 2 * part->size(1) <= x.size(2) &&
              part->sizes() == table.cos.sizes() && part->scalar_type() == at::kFloat && part->is_contiguous() &&
              part->device() == x.device(),
          kName,
          fmt::format("cos and sin alike, contiguous [{}, at most {}] float32 on {}, but got {}", x.size(0),
                      x.size(2) / 2, x.device().str(),
                      part->defined() ? shape_text(*part) + " on " + part->device().str() : "none"));
  }
  return Rotary::apply(x, table.cos, table.sin);
}

}  // namespace tessera::kernels
