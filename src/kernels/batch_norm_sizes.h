// What batch norm's kernels and their callers agree on.
#pragma once

#include <cstdint>

namespace tessera::kernels {

enum class BatchNormThen { kNothing, kRelu, kAddRelu };

inline constexpr int kBatchNormThreads = 256;
inline constexpr int kBatchNormPack = 8;  // channels that a thread reads at once

// Every thread stays at its channels: those of ResNets.
inline constexpr bool batch_norm_has_channels(std::int64_t C) {
  return C > 0 && C % kBatchNormPack == 0 && C <= kBatchNormThreads * kBatchNormPack &&
         kBatchNormThreads % (C / kBatchNormPack) == 0;
}

}  // namespace tessera::kernels
