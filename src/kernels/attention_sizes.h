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

// What packed attention takes beside q, k, v and its result [T, H, D], in bytes: for the memory plan.
struct AttentionCase {
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
inline AttentionBytes attention_bytes(const AttentionCase& c) {
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
