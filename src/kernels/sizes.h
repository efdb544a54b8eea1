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

// What packed attention takes beside q, k, v and its result [T, H, D], in bytes: for the memory plan.
struct AttentionSizes {
  std::int64_t T, H, D, longest, element_bytes;
  bool on_gpu, has_alibi, drops;

  bool is_half() const { return element_bytes != 4; }
  bool is_fused() const { return on_gpu && is_half() && attention_has_head_size(D) && !drops; }  // attention.cu
};
struct AttentionBytes {
  std::int64_t logsumexp = 0;  // [H, T] float32, kept for backward
  std::int64_t wide = 0;       // q, k, v and the result are each kept in this many, widened for FlashAttention; 0: not
  std::int64_t forward = 0, backward = 0;  // while it runs
};
inline AttentionBytes attention_bytes(const AttentionSizes& c) {
  constexpr std::int64_t kFloat = 4;
  AttentionBytes bytes;
  bytes.logsumexp = c.H * c.T * kFloat;
  if (c.is_fused()) {
    bytes.backward = bytes.logsumexp;
  } else if (c.on_gpu && c.is_half()) {
    const std::int64_t padded = (c.D + (c.has_alibi ? kAlibiParts : 0) + 7) / 8 * 8;
    if (padded != c.D) bytes.wide = c.T * c.H * padded * c.element_bytes;
  } else if (c.on_gpu) {  // libtorch's operators: scores, their exponents, a mask
    bytes.forward = 3 * c.H * c.longest * c.longest * kFloat;
    bytes.backward = 4 * c.H * c.longest * c.longest * kFloat;
  } else {
    // Two blocks of scores; for half types also a head's q, k, v and result in float32, and in backward their
    // gradients.
    const std::int64_t scores = 2 * (kQueryBlock < c.longest ? kQueryBlock : c.longest) * c.longest;
    const std::int64_t head = c.is_half() ? 4 * c.longest * c.D : 0;
    bytes.forward = (scores + head) * kFloat;
    bytes.backward = (scores + 2 * head) * kFloat;
  }
  return bytes;
}

}  // namespace tessera::kernels
