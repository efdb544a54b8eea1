// What generation keeps of past tokens: the keys and values of every layer.
//
// Sequence b fills slots 0, 1, ... of its own row, whatever the others' lengths; nothing is moved or joined when a
// token is added, only when the cache grows. First come the prompts (begin_prompt, then store for each layer), then one
// token of every sequence at a time (begin_token, then attend for each layer, then end_token).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/attention.h"
#include "tessera/packed_batch.h"

namespace tessera {

struct CacheShape {
  std::int64_t num_layers, num_sequences, num_heads, capacity, head_dim;  // heads of keys and values
};

class KeyValueCache {
 public:
  KeyValueCache(const CacheShape& shape, const at::TensorOptions& options);

  // All prompts, one per row; none may be longer than the capacity.
  void begin_prompt(const PackedBatch& prompts);
  void store(std::int64_t layer, const at::Tensor& k, const at::Tensor& v);  // [T, H, D]

  void begin_token();  // the next one of every sequence
  // Stores k and v [B, Hkv, D], then returns what q [B, H, D] sees of its own sequence: [B, H, D]. Of `how` counts what
  // concerns scores: scale, window, slopes.
  at::Tensor attend(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const kernels::PackedAttention& how);
  void end_token();

  // Grows to this many slots per sequence, at least as many as now; call between two steps. Beyond the new cache it
  // needs one layer's old keys or values at a time.
  void grow(std::int64_t capacity);
  // Keeps only these rows, in this order.
  void keep(const std::vector<std::int64_t>& rows);

  const at::Tensor& lengths() const { return lengths_; }  // [B] int64 on the device: the position of the next token
  std::int64_t longest() const;
  // Whether the next token takes any sequence past this length.
  bool passes_next(double length) const;
  std::int64_t capacity() const { return shape_.capacity; }

 private:
  at::Tensor slots(const at::Tensor& rows, const at::Tensor& positions) const;
  const at::Tensor& bias_of(const kernels::PackedAttention& how);

  CacheShape shape_;
  std::vector<at::Tensor> keys_, values_;   // per layer: [B, H, S, D]
  std::vector<std::int64_t> host_lengths_;  // of each sequence
  at::Tensor lengths_;
  at::Tensor slots_;   // [T * Hkv]: where the current tokens go, in rows of [B * Hkv * S, D]
  at::Tensor offset_;  // [B, 1, L]: how far each slot lies behind the current token (or, if unfilled, ahead of it)
  // By window: [B, H or 1, L] float32 of the current step: ALiBi, and -inf where a token does not look.
  std::map<std::int64_t, at::Tensor> biases_;
};

}  // namespace tessera
