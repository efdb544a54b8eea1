// What kernels, their callers and the memory plan agree on. (no torch)
#pragma once

#include <cstdint>

namespace tessera::kernels {

// Packed attention.
inline constexpr std::int64_t kQueryBlock = 128;  // CPU: queries scored against all their keys at once
inline constexpr int kAlibiParts = 3;             // GPU: elements after each head that carry ALiBi's term

// GPU: head sizes of attention.cu, those of the BLOOM family and of GPT-2.
inline constexpr bool attention_has_head_size(std::int64_t D) {
  return D == 64 || D == 80 || D == 96 || D == 128;
}

// What batch norm's kernels and their callers agree on.
enum class BatchNormThen { kNothing, kRelu, kAddRelu };

inline constexpr int kBatchNormThreads = 256;
inline constexpr int kBatchNormPack = 8;  // channels that a thread reads at once

// Every thread stays at its channels: those of ResNets.
inline constexpr bool batch_norm_has_channels(std::int64_t C) {
  return C > 0 && C % kBatchNormPack == 0 && C <= kBatchNormThreads * kBatchNormPack &&
         kBatchNormThreads % (C / kBatchNormPack) == 0;
}

// Rows that one block adds up before partial sums are joined: K sums over columns need K * num_row_blocks * C floats.
inline constexpr std::int64_t kCudaRowBlock = 64;
inline constexpr int kMostColumnSums = 4;
inline constexpr std::int64_t num_row_blocks(std::int64_t num_rows) {
  return (num_rows + kCudaRowBlock - 1) / kCudaRowBlock;
}

inline constexpr int kMaxPoolPack = 8;  // channels that a thread reads at once

inline constexpr std::int64_t pooled_side(std::int64_t side) {
  return (side + 1) / 2;
}

}  // namespace tessera::kernels
