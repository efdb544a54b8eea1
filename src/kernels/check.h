// The checks every kernel makes on its tensors, with one wording for all.
#pragma once

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "core/error.h"

namespace tessera::kernels {

inline std::string shape_text(const at::Tensor& tensor) {
  return fmt::format("[{}] {}", fmt::join(tensor.sizes().begin(), tensor.sizes().end(), ", "),
                     c10::toString(tensor.scalar_type()));
}

inline void check(bool holds, const char* kernel, const std::string& expectation) {
  if (!holds) throw Error(fmt::format("{} expects {}", kernel, expectation));
}

inline bool is_half_type(at::ScalarType type) {
  return type == at::kBFloat16 || type == at::kHalf;
}

// Half types on a GPU, channels-last, words of 16 bytes in place.
inline bool is_half_image_on_gpu(const at::Tensor& x_BCHW) {
  return x_BCHW.is_cuda() && x_BCHW.dim() == 4 && x_BCHW.numel() > 0 && is_half_type(x_BCHW.scalar_type()) &&
         x_BCHW.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         reinterpret_cast<std::uintptr_t>(x_BCHW.const_data_ptr()) % 16 == 0;
}

inline void check_float_type(const at::Tensor& tensor, const char* kernel, const char* name) {
  const auto type = tensor.scalar_type();
  check(type == at::kFloat || is_half_type(type), kernel,
        fmt::format("{} in float32, bfloat16 or float16 but got {}", name, c10::toString(type)));
}

// `value` is one row of `x`: [C], in x's type, on x's device.
inline void check_row(const at::Tensor& x, const at::Tensor& value, const char* kernel, const char* name) {
  check(x.dim() > 0, kernel, "an input of at least one dimension but got a scalar");
  check(value.dim() == 1 && value.size(0) == x.size(-1) && value.scalar_type() == x.scalar_type() &&
            value.device() == x.device(),
        kernel,
        fmt::format("{} of [{}] in the input's type {} on {} but got {} on {}", name, x.size(-1),
                    c10::toString(x.scalar_type()), x.device().str(), shape_text(value), value.device().str()));
}

}  // namespace tessera::kernels
