#include "kernels/split_floats.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>

#include "kernels/parallel.h"
#include "kernels/split_floats_cpu.h"

namespace tessera::kernels {
namespace {

constexpr std::int64_t kAtOnce = std::int64_t{4} << 20;  // numbers: intermediate results are small beside the whole

void for_each_part(std::int64_t numel, const std::function<void(std::int64_t begin, std::int64_t num)>& body) {
  for (std::int64_t begin = 0; begin < numel; begin += kAtOnce) body(begin, std::min(kAtOnce, numel - begin));
}

at::Tensor as_top_bits(const at::Tensor& copies) {
  return copies.view(at::kShort).to(at::kInt).bitwise_left_shift_(16);
}

}  // namespace

SplitFloats SplitFloats::narrow(std::int64_t begin, std::int64_t num) const {
  return {values.narrow(0, begin, num), remainder.defined() ? remainder.narrow(0, begin, num) : at::Tensor()};
}

SplitFloats SplitFloats::clone() const {
  return {values.clone(), remainder.defined() ? remainder.clone() : at::Tensor()};
}

at::Tensor SplitFloats::joined() const {
  if (!remainder.defined()) return values;
  at::Tensor numbers = at::empty({numel()}, values.options().dtype(at::kFloat));
  if (numbers.is_cpu()) {
    const auto* copies = values.const_data_ptr<c10::BFloat16>();
    const auto* remainders = remainder.const_data_ptr<std::int16_t>();
    auto* to = numbers.mutable_data_ptr<float>();
    parallel_for(0, numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      join_halves(copies + begin, remainders + begin, to + begin, end - begin);
    });
    return numbers;
  }
  for_each_part(numel(), [&](std::int64_t begin, std::int64_t num) {
    numbers.narrow(0, begin, num)
        .view(at::kInt)
        .copy_(as_top_bits(values.narrow(0, begin, num)).add_(remainder.narrow(0, begin, num)));
  });
  return numbers;
}

at::Tensor remainder_of(const at::Tensor& numbers, const at::Tensor& copies, std::optional<at::Device> device) {
  at::Tensor remainder = at::empty({numbers.numel()}, at::dtype(at::kShort).device(device.value_or(numbers.device())));
  for_each_part(numbers.numel(), [&](std::int64_t begin, std::int64_t num) {
    const at::Tensor bits = numbers.narrow(0, begin, num).view(at::kInt);
    const at::Tensor tie_down = bits.bitwise_and(0x1ffff).eq(0x8000).to(at::kInt);
    remainder.narrow(0, begin, num).copy_(bits.sub(tie_down).sub_(as_top_bits(copies.narrow(0, begin, num))));
  });
  return remainder;
}

}  // namespace tessera::kernels
