// Rotary positions: pairs of numbers of each query and key turn by angles that grow with the position.
//
// Angle i of a token at position p is p * f_i with f_i = theta^(-2 i / R) for R rotated numbers; the kinds of scaling
// change the f_i so that a model reads rows longer than those it was trained on. As transformers computes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/rotary.h"
#include "tessera/packed_batch.h"

namespace tessera {

enum class RotaryKind { kPlain, kLinear, kDynamic, kLlama3, kYarn, kLongRope };

struct Rotary {
  RotaryKind kind = RotaryKind::kPlain;
  double theta = 10000;
  std::int64_t num_rotated = 0;  // R: of each head, from its first number; even

  double factor = 1;
  double attention_factor = 1;                                 // of cos and sin
  double original_positions = 0;                               // that the model was trained on
  double low_frequency_factor = 1, high_frequency_factor = 4;  // kLlama3
  double beta_fast = 32, beta_slow = 1;                        // kYarn
  bool truncates = true;                                       // kYarn: bounds of the ramp are whole numbers
  std::vector<double> short_factors{}, long_factors{};         // kLongRope: R / 2 numbers each
  bool refills_cache = false;  // kLongRope: in generation, when a row outgrows the original positions: Phi-3

  // By the length of each token's own row.
  bool depends_on_length() const { return kind == RotaryKind::kDynamic || kind == RotaryKind::kLongRope; }
};

// cos and sin of tokens at `positions` [T] in rows of `row_lengths` [T] tokens (int64, on one device), which may be
// undefined where the kind does not depend on them. On a GPU nothing waits for queued work.
kernels::RotaryTable rotary_table(const Rotary& rotary, const at::Tensor& positions, const at::Tensor& row_lengths);

// For each token the length of its row.
at::Tensor row_lengths(const PackedBatch& batch);

}  // namespace tessera
