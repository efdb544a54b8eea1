// Sizes of packed attention shared by its kernels and the memory plan.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr std::int64_t kQueryBlock = 128;  // CPU: queries scored against all their keys at once
inline constexpr int kAlibiParts = 3;             // GPU: elements after each head that carry ALiBi's term

}  // namespace tessera::kernels
