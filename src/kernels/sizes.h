// What kernels, their callers and the memory plan agree on. (no torch)
#pragma once

#include <cstdint>

namespace tessera::kernels {

// Packed attention.
inline constexpr std::int64_t kQueryBlock = 128;  // CPU: queries scored against all their keys at once
inline constexpr int kAlibiParts = 3;             // GPU: elements after each head that carry ALiBi's term

// Numbers of a block of scores in the longest sequence; window 0: none.
inline constexpr std::int64_t attention_block_numel(std::int64_t longest, std::int64_t window) {
  const std::int64_t queries = kQueryBlock < longest ? kQueryBlock : longest;
  const std::int64_t keys = window > 0 && window <= longest - queries ? queries + window - 1 : longest;
  return queries * keys;
}

// GPU: larger heads, and all that attention.cu does not know, give the same gradients every time.
inline constexpr std::int64_t kLargestHeadOfAnyOrder = 192;

// GPU: head sizes of attention.cu, those of the BLOOM family and of GPT-2.
inline constexpr bool attention_has_head_size(std::int64_t D) {
  return D == 64 || D == 80 || D == 96 || D == 128;
}

// rms_norm.h: how the weight enters. In half types the order of rounding shows.
enum class RmsWeight {
  kAfterRounding,   // Llama: rounds the normed row to the type, then multiplies (in the type)
  kBeforeRounding,  // OLMo 2: multiplies in float32, then rounds
  kOnePlus          // Gemma: multiplies by 1 + weight in float32, then rounds
};

// gated_linear.h; kGelu: the tanh form
enum class GateActivation { kSilu, kGelu };

// Where the rows of a view begin, in numbers: at (r / inner) * outer_stride + (r % inner) * inner_stride.
struct RowPlaces {
  std::int64_t inner = 1, outer_stride = 0, inner_stride = 0;

  constexpr std::int64_t at(std::int64_t row) const {
    return inner == 1 ? row * outer_stride : row / inner * outer_stride + row % inner * inner_stride;
  }
};

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

// The same for RMS norms, whose rows may be heads: so many that there are at most 1,024 partial sums.
inline constexpr std::int64_t rms_rows_of_block(std::int64_t num_rows) {
  const std::int64_t rows = (num_rows + 1023) / 1024;
  return rows < kCudaRowBlock ? kCudaRowBlock : rows;
}
inline constexpr std::int64_t num_rms_blocks(std::int64_t num_rows) {
  return (num_rows + rms_rows_of_block(num_rows) - 1) / rms_rows_of_block(num_rows);
}

inline constexpr int kMaxPoolPack = 8;  // channels that a thread reads at once

inline constexpr std::int64_t pooled_side(std::int64_t side) {
  return (side + 1) / 2;
}

// What packed attention takes beside q, its result [T, H, D] and k and v [T, kv_heads, D], in bytes: for the memory
// plan.
struct AttentionSizes {
  std::int64_t T, H, D, longest, element_bytes;
  bool on_gpu, has_alibi, drops;
  std::int64_t num_kv_heads = 0;  // 0: H
  std::int64_t window = 0;        // 0: none
  bool has_scale = false;         // another one than 1 / sqrt(D)
  std::int64_t num_sequences = 1;

  bool is_half() const { return element_bytes != 4; }
  bool is_grouped() const { return num_kv_heads != 0 && num_kv_heads != H; }
  bool has_fused_kernel() const { return on_gpu && is_half() && attention_has_head_size(D) && !drops; }
  bool is_fused() const {  // attention.cu, if q, k and v are one projection
    return has_fused_kernel() && !is_grouped();
  }
};
struct AttentionBytes {
  std::int64_t logsumexp = 0;  // [H, T] float32, kept for backward
  std::int64_t wide = 0;       // q, k, v and the result are each kept in this many, widened for FlashAttention; 0: not
  std::int64_t forward = 0, backward = 0;  // while it runs
};

// Of libtorch's FlashAttention in backward, where its order is fixed: sums of the gradient of q, once for as many parts
// of the keys as keep the processors busy; gradients of k and v for each query head.
inline std::int64_t flash_backward_bytes(const AttentionSizes& c, std::int64_t num_processors = 132) {
  constexpr std::int64_t kFloat = 4, kSlack = 128;  // tokens after each sequence
  const std::int64_t tokens = c.T + kSlack * c.num_sequences, step = c.D <= 128 ? 32 : 64;
  const std::int64_t tasks = c.num_sequences * c.H, parts = (num_processors + tasks - 1) / tasks;
  const std::int64_t sums = parts * tokens * c.H * ((c.D + step - 1) / step * step) * kFloat + tokens * c.H * kFloat;
  return sums + (c.is_grouped() ? 2 * c.T * c.H * c.D * c.element_bytes : 0);
}

inline AttentionBytes attention_bytes(const AttentionSizes& c) {
  constexpr std::int64_t kFloat = 4;
  AttentionBytes bytes;
  bytes.logsumexp = c.H * c.T * kFloat;
  const std::int64_t kv_heads = c.num_kv_heads == 0 ? c.H : c.num_kv_heads;
  if (c.is_fused()) {
    bytes.backward = bytes.logsumexp;
  } else if (c.on_gpu && c.is_half()) {
    const std::int64_t padded = (c.D + (c.has_alibi ? kAlibiParts : 0) + 7) / 8 * 8;
    if (padded != c.D) bytes.wide = c.T * c.H * padded * c.element_bytes;
    if (c.is_grouped() || c.window > 0 || c.has_scale || c.D > kLargestHeadOfAnyOrder)
      bytes.backward = flash_backward_bytes(c);
  } else if (c.on_gpu) {  // libtorch's operators: scores, their exponents, a mask
    const std::int64_t repeated = c.is_grouped() ? 2 * c.longest * c.H * c.D * kFloat : 0;  // k and v of every head
    bytes.forward = 3 * c.H * c.longest * c.longest * kFloat + repeated;
    bytes.backward = 4 * c.H * c.longest * c.longest * kFloat + 2 * repeated;
  } else {
    // Two blocks of scores; for half types also a head's q, k, v and result in float32, and in backward their
    // gradients. Grouped heads: gradients of k and v of every query head, in float32, one of them added up beside both.
    const std::int64_t scores = 2 * attention_block_numel(c.longest, c.window);
    const std::int64_t head = c.is_half() ? 4 * c.longest * c.D : 0;
    const std::int64_t of_heads = c.is_grouped() ? 2 * c.T * c.H * c.D : 0, own = c.T * kv_heads * c.D;
    bytes.forward = (scores + head) * kFloat;
    bytes.backward = (scores + 2 * head + of_heads) * kFloat;
    if (c.is_grouped() && bytes.backward < (of_heads + own) * kFloat) bytes.backward = (of_heads + own) * kFloat;
  }
  return bytes;
}

}  // namespace tessera::kernels
