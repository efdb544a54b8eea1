// Sizes of packed attention shared by its kernels and the memory plan.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr std::int64_t kQueryBlock = 128;  // CPU: queries scored against all their keys at once
inline constexpr int kAlibiParts = 3;             // GPU: elements after each head that carry ALiBi's term

// GPU: head sizes of attention.cu, those of the BLOOM family and of GPT-2.
inline constexpr bool attention_has_head_size(std::int64_t D) {
  return D == 64 || D == 80 || D == 96 || D == 128;
}

}  // namespace tessera::kernels
