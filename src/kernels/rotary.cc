#include "kernels/rotary.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"
#include "kernels/decoder_passes.h"

namespace tessera::kernels {
namespace {

constexpr const char* kRotaryName = "rotary";

}  // namespace

void check_rotary_table(const RotaryTable& table, const at::Tensor& heads) {
  const std::int64_t T = heads.size(0), D = heads.size(2);
  for (const auto* part : {&table.cos, &table.sin}) {
    if (part->defined() && part->dim() == 2 && part->size(0) == T && 2 * part->size(1) <= D &&
        part->sizes() == table.cos.sizes() && part->scalar_type() == at::kFloat && part->is_contiguous() &&
        part->device() == heads.device()) {
      continue;
    }
    check(false, kRotaryName,
          fmt::format("cos and sin alike, contiguous [{}, at most {}] float32 on {}, but got {}", T, D / 2,
                      heads.device().str(),
                      part->defined() ? shape_text(*part) + " on " + part->device().str() : "none"));
  }
}

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

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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
  check_float_type(x, kRotaryName, "x");
  check(x.dim() == 3, kRotaryName, fmt::format("x as [tokens, heads, head size] but got {}", shape_text(x)));
  check_rotary_table(table, x);
  return Rotary::apply(x, table.cos, table.sin);
}

}  // namespace tessera::kernels
