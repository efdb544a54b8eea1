#include "kernels/flat_buffers.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <functional>

#include "kernels/check.h"
#include "kernels/cpu_rows.h"
#include "kernels/cuda_kernels.h"
#include "kernels/half_numbers.h"
#include "kernels/parallel.h"

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

at::Tensor block_square_sums(const at::Tensor& values) {
  constexpr const char* kName = "block_square_sums";
  check_float_type(values, kName, "values");
  check(values.dim() == 1 && values.is_contiguous(), kName,
        fmt::format("values as a contiguous flat buffer but got {}", shape_text(values)));
  auto sums = at::empty({(values.numel() + kNormBlock - 1) / kNormBlock}, values.options().dtype(at::kDouble));
  if (values.numel() == 0) return sums;
  if (values.is_cuda()) {
    cuda_kernels().block_square_sums(values, sums);
  } else {
    block_square_sums_cpu(values.scalar_type(), values.const_data_ptr(), values.numel(),
                          sums.mutable_data_ptr<double>());
  }
  return sums;
}

at::Tensor add_units_cuda(const at::Tensor& sums, const at::Tensor& begins) {
  check(sums.is_cuda() && sums.dim() == 2 && sums.is_contiguous() && sums.scalar_type() == at::kDouble &&
            begins.scalar_type() == at::kLong && begins.device() == sums.device() && begins.numel() > 1,
        "add_units_cuda", fmt::format("float64 sums as [parts, n] on a GPU but got {}", shape_text(sums)));
  return cuda_kernels().add_units(sums, begins);
}

void put_parts(const at::Tensor& flat, const std::vector<FlatPart>& parts) {
  constexpr const char* kName = "put_parts";
  check_float_type(flat, kName, "flat");
  std::vector<FlatPart> together;  // parts that one launch can handle
  for (const FlatPart& part : parts) {
    if (part.offset < 0 || part.offset + part.values.numel() > flat.numel()) {
      check(false, kName,
            fmt::format("parts within {} numbers but got {} at {}", flat.numel(), part.values.numel(), part.offset));
    }
    const bool is_plain = flat.is_cuda() && part.values.is_contiguous() &&
                          (together.empty() || together.front().values.scalar_type() == part.values.scalar_type());
    if (is_plain) {
      together.push_back(part);
      continue;
    }
    const at::Tensor target = flat.narrow(0, part.offset, part.values.numel()).view(part.values.sizes());
    part.adds ? target.add_(part.values) : target.copy_(part.values, /*non_blocking=*/true);
  }
  if (!together.empty()) cuda_kernels().put_parts(flat, together);
}

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
