#include "kernels/rotary.h"

#include <ATen/ops/cat.h>

#include "kernels/check.h"

namespace tessera::kernels {
namespace {

void check_rotary(const at::Tensor& x, const RotaryTable& table) {
  constexpr const char* kName = "rotary";
  check_float_type(x, kName, "x");
  check(x.dim() == 3, kName, fmt::format("x as [tokens, heads, head size] but got {}", shape_text(x)));
  for (const auto* part : {&table.cos, &table.sin}) {
    check(part->defined() && part->dim() == 2 && part->size(0) == x.size(0) && 2 * part->size(1) <= x.size(2) &&
              part->sizes() == table.cos.sizes() && part->scalar_type() == at::kFloat && part->is_contiguous() &&
              part->device() == x.device(),
          kName,
          fmt::format("cos and sin as contiguous [{}, at most {}] float32 on {} but got {}", x.size(0), x.size(2) / 2,
                      x.device().str(), part->defined() ? shape_text(*part) + " on " + part->device().str() : "none"));
  }
}

}  // namespace

at::Tensor rotary(const at::Tensor& x, const RotaryTable& table) {
  check_rotary(x, table);
  const std::int64_t half = table.cos.size(1), rest = x.size(2) - 2 * half;
  const auto cos = table.cos.unsqueeze(1), sin = table.sin.unsqueeze(1);
  const auto first = x.narrow(2, 0, half).to(at::kFloat), second = x.narrow(2, half, half).to(at::kFloat);
  const auto type = x.scalar_type();
  return at::cat(
      {(first * cos - second * sin).to(type), (second * cos + first * sin).to(type), x.narrow(2, 2 * half, rest)}, 2);
}

}  // namespace tessera::kernels
