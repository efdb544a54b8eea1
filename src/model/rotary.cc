// Shape letters: T tokens, R rotated numbers of each head.
//
// Everything is float32, in the originals' order of operations: at position 100,000 the last bit of a frequency is a
// hundredth of a turn.
#include "model/rotary.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace tessera {
namespace {

// A copy that blocks would let the host wait for all that is queued. The driver takes few bytes at once.
at::Tensor queue_copy(const at::Tensor& tensor, at::Device device) {
  return tensor.to(device, /*non_blocking=*/true);
}

// 2 i / R: [R / 2].
at::Tensor exponents(const Rotary& rotary) {
  return at::arange(0, rotary.num_rotated, 2, at::kLong).to(at::kFloat) / static_cast<double>(rotary.num_rotated);
}

at::Tensor powers(const Rotary& rotary) {
  return at::pow(rotary.theta, exponents(rotary));
}

// Slow turns are slowed down further, fast ones stay, those between are mixed.
at::Tensor llama3_frequencies(const Rotary& rotary) {
  const at::Tensor plain = powers(rotary).reciprocal();
  const double low = rotary.low_frequency_factor, high = rotary.high_frequency_factor;
  const at::Tensor wavelength = (2 * std::numbers::pi) / plain, slowed = plain / rotary.factor;
  const at::Tensor share = (rotary.original_positions / wavelength - low) / (high - low);
  const at::Tensor mixed = (1 - share) * slowed + share * plain;
  const at::Tensor rest = at::where(wavelength < rotary.original_positions / high, plain, mixed);
  return at::where(wavelength > rotary.original_positions / low, slowed, rest);
}

// A ramp over i between the pairs that turn beta_fast and beta_slow times within the original positions.
at::Tensor yarn_frequencies(const Rotary& rotary) {
  const auto R = static_cast<double>(rotary.num_rotated);
  const auto pair_that_turns = [&](double times) {
    return R * std::log(rotary.original_positions / (times * 2 * std::numbers::pi)) / (2 * std::log(rotary.theta));
  };
  double low = pair_that_turns(rotary.beta_fast), high = pair_that_turns(rotary.beta_slow);
  if (rotary.truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, R - 1);
  if (low == high) high += 0.001;
  const at::Tensor ramp = ((at::arange(rotary.num_rotated / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  const at::Tensor plain = powers(rotary), kept = 1 - ramp;
  return (rotary.factor * plain).reciprocal() * (1 - kept) + plain.reciprocal() * kept;
}

at::Tensor long_rope_frequencies(const Rotary& rotary, const std::vector<double>& factors) {
  return (at::tensor(factors, at::kFloat) * powers(rotary)).reciprocal();
}

// Of rows longer than the original positions, theta grows with the length: [T, R / 2].
at::Tensor dynamic_frequencies(const Rotary& rotary, const at::Tensor& row_lengths) {
  const auto R = static_cast<double>(rotary.num_rotated);
  const at::Tensor length = row_lengths.to(at::kFloat).clamp_min(rotary.original_positions);
  const at::Tensor stretched = rotary.factor * length / rotary.original_positions - (rotary.factor - 1);
  const at::Tensor theta = rotary.theta * at::pow(stretched, R / (R - 2));
  return at::pow(theta.unsqueeze(1), queue_copy(exponents(rotary), row_lengths.device())).reciprocal();
}

// [R / 2], or [T, R / 2] where rows differ.
at::Tensor frequencies(const Rotary& rotary, const at::Tensor& row_lengths, at::Device device) {
  switch (rotary.kind) {
    case RotaryKind::kPlain:
      return queue_copy(powers(rotary).reciprocal(), device);
    case RotaryKind::kLinear:
      return queue_copy(powers(rotary).reciprocal() / rotary.factor, device);
    case RotaryKind::kLlama3:
      return queue_copy(llama3_frequencies(rotary), device);
    case RotaryKind::kYarn:
      return queue_copy(yarn_frequencies(rotary), device);
    case RotaryKind::kDynamic:
      return dynamic_frequencies(rotary, row_lengths);
    case RotaryKind::kLongRope:
      break;
  }
  const at::Tensor is_long = (row_lengths > rotary.original_positions).unsqueeze(1);
  return at::where(is_long, queue_copy(long_rope_frequencies(rotary, rotary.long_factors), device),
                   queue_copy(long_rope_frequencies(rotary, rotary.short_factors), device));
}

}  // namespace

kernels::RotaryTable rotary_table(const Rotary& rotary, const at::Tensor& positions, const at::Tensor& row_lengths) {
  const at::Tensor angles =
      positions.to(at::kFloat).unsqueeze(1) * frequencies(rotary, row_lengths, positions.device());
  kernels::RotaryTable table{angles.cos(), angles.sin()};
  if (rotary.attention_factor != 1) {
    table.cos.mul_(rotary.attention_factor);
    table.sin.mul_(rotary.attention_factor);
  }
  return table;
}

at::Tensor row_lengths(const PackedBatch& batch) {
  const at::Tensor lengths = batch.cu_seqlens.diff().to(at::kLong);
  return at::repeat_interleave(lengths, lengths, /*dim=*/0, /*output_size=*/batch.input_ids.numel());
}

}  // namespace tessera
