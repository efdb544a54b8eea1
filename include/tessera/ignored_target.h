// The target of a position that does not count for the loss, as in torch's cross-entropy.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr std::int32_t kIgnoredTarget = -100;

}  // namespace tessera
