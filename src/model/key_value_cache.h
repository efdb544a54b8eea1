// What generation keeps of past tokens: the keys and values of every layer.
//
// Sequence b fills slots 0, 1, ... of its own row, whatever the others' lengths; nothing is moved or joined when a
// token is added, only when the cache grows. First come the prompts (begin_prompt, then store for each layer), then one
// token of every sequence at a time (begin_token, then attend for each layer, then end_token).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tessera/packed_batch.h"

namespace tessera {

struct CacheShape {
  std::int64_t num_layers, num_sequences, num_heads, capacity, head_dim;
};

class KeyValueCache {
 public:
  KeyValueCache(const CacheShape& shape, const at::TensorOptions& options);

  // All prompts, one per row; none may be longer than the capacity.
  void begin_prompt(const PackedBatch& prompts);
  void store(std::int64_t layer, const at::Tensor& k, const at::Tensor& v);  // [T, H, D]

  // The next token of every sequence. `slopes`: [H] float32 or none, as in kernels::PackedAttention.
  void begin_token(const std::optional<at::Tensor>& slopes);
  // Stores k and v, then returns what q sees of its own sequence: all [B, H, D].
  at::Tensor attend(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
  void end_token();

  // Grows to this many slots per sequence, at least as many as now; call between two steps. Beyond the new cache it
  // needs one layer's old keys or values at a time.
  void grow(std::int64_t capacity);
  // Keeps only these rows, in this order.
  void keep(const std::vector<std::int64_t>& rows);

  const at::Tensor& lengths() const { return lengths_; }  // [B] int64 on the device: the position of the next token
  std::int64_t longest() const;
  std::int64_t capacity() const { return shape_.capacity; }

 private:
  at::Tensor slots(const at::Tensor& rows, const at::Tensor& positions) const;

  CacheShape shape_;
  std::vector<at::Tensor> keys_, values_;   // per layer: [B, H, S, D]
  std::vector<std::int64_t> host_lengths_;  // of each sequence
  at::Tensor lengths_;
  at::Tensor slots_;  // [T * H]: where the current tokens go, in rows of [B * H * S, D]
  at::Tensor bias_;   // [B, H, 1, L] float32 of the current step: ALiBi, and -inf beyond a sequence's end
};

}  // namespace tessera
