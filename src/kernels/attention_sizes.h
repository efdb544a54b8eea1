// Sizes of packed attention that its kernels and the memory plan share.
#pragma once

#include <cstdint>

namespace tessera::kernels {

inline constexpr std::int64_t kQueryBlock = 128;  // on a CPU: queries that meet all their keys at once
inline constexpr int kAlibiParts = 3;             // on a GPU: numbers behind each head that carry ALiBi's term

}  // namespace tessera::kernels
