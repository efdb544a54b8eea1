#include "kernels/norm.h"

#include <ATen/ops/empty.h>

#include "kernels/check.h"
#include "kernels/cuda_kernels.h"
#include "kernels/norm_cpu.h"

namespace tessera::kernels {

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

double add_in_order(const at::Tensor& sums) {
  check(sums.scalar_type() == at::kDouble, "add_in_order",
        fmt::format("float64 sums but got {}", c10::toString(sums.scalar_type())));
  const auto host = sums.cpu().contiguous();
  const double* each = host.const_data_ptr<double>();
  double total = 0;
  for (std::int64_t i = 0; i < host.numel(); ++i) total += each[i];
  return total;
}

}  // namespace tessera::kernels
