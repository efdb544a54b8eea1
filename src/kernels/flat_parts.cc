#include "kernels/flat_parts.h"

#include "kernels/check.h"
#include "kernels/cuda_kernels.h"

namespace tessera::kernels {

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

}  // namespace tessera::kernels
