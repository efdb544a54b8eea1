// The checks the optimizers make on their flat buffers.
#pragma once

#include <optional>

#include "kernels/check.h"
#include "kernels/optimizer_cpu.h"

namespace tessera::kernels {

// `buffer` is [n] like params, contiguous, on its device, of one of `types`.
inline void check_flat(const at::Tensor& params, const at::Tensor& buffer, std::initializer_list<at::ScalarType> types,
                       const char* kernel, const char* name) {
  bool right_type = false;
  std::string allowed;
  for (const auto type : types) {
    right_type = right_type || (buffer.defined() && buffer.scalar_type() == type);
    allowed += fmt::format("{}{}", allowed.empty() ? "" : " or ", c10::toString(type));
  }
  check(params.defined() && params.dim() == 1, kernel, "params as one flat buffer of one dimension");
  check(buffer.defined() && right_type && buffer.sizes() == params.sizes() && buffer.is_contiguous() &&
            buffer.device() == params.device(),
        kernel,
        fmt::format("{} as a contiguous [{}] {} on {} but got {} on {}", name, params.numel(), allowed,
                    params.device().str(), buffer.defined() ? shape_text(buffer) : "none",
                    buffer.defined() ? buffer.device().str() : "no device"));
}

inline FlatStep flat_step(const at::Tensor& params, const at::Tensor& grads, const std::optional<at::Tensor>& copy) {
  return {params.mutable_data_ptr<float>(),
          grads.const_data_ptr(),
          grads.scalar_type(),
          copy ? copy->mutable_data_ptr() : nullptr,
          copy ? copy->scalar_type() : at::kFloat,
          params.numel()};
}

}  // namespace tessera::kernels
