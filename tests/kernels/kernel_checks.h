// Each kernel against a plain reference in float64 on the CPU: forward and gradients, in one table for every device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "kernels/sizes.h"

namespace tessera::kernels {

// The largest difference, relative to the reference's largest number (or to 0.1, if that is larger).
double difference(const at::Tensor& value, const at::Tensor& reference);

void expect_near(const at::Tensor& value, const at::Tensor& reference, double most, const char* what);
// The same numbers in float64 on the CPU, requiring a gradient.
at::Tensor double_leaf(const at::Tensor& tensor);

// How far a type's results may be from the reference, by difference(): a few of its own rounding steps.
double tolerance(at::ScalarType type);

// Random normal numbers, rounded to the type, on the device.
at::Tensor random_tensor(at::IntArrayRef sizes, at::ScalarType type, at::Device device, std::uint64_t seed,
                         double deviation = 1.0);

// q and k with ALiBi's parts after the first D elements of each head, and zeros up to a multiple of 8: the plain form
// of what widen_heads.cu does on a GPU (attention_gpu.cc says why).
std::pair<at::Tensor, at::Tensor> with_alibi_dimensions(const at::Tensor& q, const at::Tensor& k,
                                                        const PackedAttention& how);

struct AttentionCase {
  std::string name;
  std::vector<std::int64_t> lengths;
  std::int64_t num_heads, head_size;
  bool alibi;
  bool fused;                     // q, k, v as views of one [T, H, 3, D] projection, or [T, H + 2 Hkv, D] if grouped
  std::int64_t num_kv_heads = 0;  // 0: num_heads
  std::int64_t window = 0;        // 0: none
  double scale = 0;               // 0: 1 / sqrt(D)
};
const std::vector<AttentionCase>& attention_cases();
// With grouped heads, windows and scales.
const std::vector<AttentionCase>& decoder_attention_cases();
using AttentionFunction = at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const PackedAttention&);
void check_attention(const AttentionCase& attention, at::ScalarType type, at::Device device,
                     AttentionFunction& compute = packed_attention);
// packed_attention of one projection, [T, H, 3, D] and [T, 3, H, D], for check_attention.
at::Tensor attention_of_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how);
at::Tensor attention_of_parts(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedAttention& how);
// attention_forward and attention_backward, as nodes of more than attention call them.
at::Tensor attention_by_passes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const PackedAttention& how);
// Dropout drops about its share, keeps the mean, and backward uses forward's mask.
void check_attention_dropout(at::ScalarType type, at::Device device, AttentionFunction& compute = packed_attention);

struct RowsCase {
  std::vector<std::int64_t> sizes;  // [..., C]
};
const std::vector<RowsCase>& rows_cases();
// bias_gelu_linear with a weight that changes nothing: the GELU alone, with the same bits.
at::Tensor bias_gelu(const at::Tensor& x, const at::Tensor& bias);
void check_bias_gelu(const RowsCase& rows, at::ScalarType type, at::Device device);
// Gives the same as its parts, gradients too.
void check_bias_gelu_linear(const RowsCase& rows, at::ScalarType type, at::Device device);
void check_layer_norm(const RowsCase& rows, at::ScalarType type, at::Device device);

// Alone, after a residual, and of heads that lie in a wider projection; each way for the weight to enter. In half types
// also the rounding: by transformers' operations, bit for bit but for rows whose last bit of 1 / rms differs.
void check_rms_norm(const RowsCase& rows, RmsWeight how, at::ScalarType type, at::Device device);
void check_rms_norm_of_heads(RmsWeight how, at::ScalarType type, at::Device device);

struct RotaryCase {
  std::int64_t T, H, D, rotated;
};
const std::vector<RotaryCase>& rotary_cases();
// Of dense heads and of those of a wider projection.
void check_rotary(const RotaryCase& rotary, at::ScalarType type, at::Device device);

struct GatedCase {
  std::int64_t T, F, C;
  bool bias, one_projection;  // gate and up are halves of one
};
const std::vector<GatedCase>& gated_cases();
void check_gated_linear(const GatedCase& gated, GateActivation activation, at::ScalarType type, at::Device device);

// One node for a whole block: results and gradients no further from float64 than those of the separate operations.
void check_transformer_block(std::int64_t num_heads, std::int64_t head_size, at::ScalarType type, at::Device device);

// One node for the whole block against its single operators: in float32 the same but for the order of a few sums, in
// half types no further from float32. Frozen and collected parameters, and the same bits each time. Small blocks of
// every family, and heads of 64 to 256.
void check_gated_blocks(at::ScalarType type, at::Device device);

struct HeadCase {
  std::string name;
  std::int64_t T, C, V;
  double counted_share;  // of the targets
  bool bias;
  double label_smoothing;
  std::int64_t chunk_rows;
};
const std::vector<HeadCase>& head_cases();
void check_linear_cross_entropy(const HeadCase& head, at::ScalarType type, at::Device device);

// put_parts() gives the bits of copy_() and add_(), for every pair of types.
void check_put_parts(at::Device device);

// AdamW, Adam and SGD step by step against torch.optim: tests/data/kernels/optimizers.json.
void check_optimizers(const std::string& references, at::Device device);
void check_lion(at::Device device);
// Ten updates of masters in halves and of whole ones, which are moved off ties as halves are.
void check_masters_in_halves(at::Device device);

}  // namespace tessera::kernels
