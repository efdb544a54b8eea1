// Shape letters: B sequences, H heads, Hkv heads of keys and values, G = H / Hkv, S slots per sequence, head size D,
// T tokens now, L slots in use.
#include "model/key_value_cache.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"

namespace tessera {
namespace {

// Zeros: unfilled slots are multiplied by a probability of 0, and NaN times 0 is NaN.
at::Tensor empty_slots(const CacheShape& s, const at::TensorOptions& options) {
  return at::zeros({s.num_sequences, s.num_heads, s.capacity, s.head_dim}, options);
}

}  // namespace

KeyValueCache::KeyValueCache(const CacheShape& shape, const at::TensorOptions& options) : shape_(shape) {
  for (std::int64_t layer = 0; layer < shape.num_layers; ++layer) {
    keys_.push_back(empty_slots(shape, options));
    values_.push_back(empty_slots(shape, options));
  }
}

void KeyValueCache::grow(std::int64_t capacity) {
  const std::int64_t before = std::exchange(shape_.capacity, capacity);
  for (std::vector<at::Tensor>* kept : {&keys_, &values_}) {
    for (at::Tensor& slots : *kept) {
      at::Tensor wider = empty_slots(shape_, slots.options());
      wider.narrow(2, 0, before).copy_(slots);
      slots = std::move(wider);
    }
  }
}

void KeyValueCache::begin_prompt(const PackedBatch& prompts) {
  const at::Tensor starts = prompts.cu_seqlens.cpu();
  const auto* start = starts.const_data_ptr<std::int32_t>();
  host_lengths_.clear();
  for (std::int64_t b = 0; b < shape_.num_sequences; ++b) host_lengths_.push_back(start[b + 1] - start[b]);
  lengths_ = at::tensor(host_lengths_, at::kLong).to(prompts.input_ids.device());
  slots_ =
      slots(at::repeat_interleave(lengths_, std::optional<std::int64_t>(prompts.input_ids.numel())), prompts.positions);
}

at::Tensor KeyValueCache::slots(const at::Tensor& rows, const at::Tensor& positions) const {
  const at::Tensor heads = at::arange(shape_.num_heads, rows.options());
  const at::Tensor lanes = rows.unsqueeze(1) * shape_.num_heads + heads;  // [T, H]
  return (lanes * shape_.capacity + positions.unsqueeze(1)).view({-1});
}

void KeyValueCache::store(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  const auto index = static_cast<std::size_t>(layer);
  keys_[index].view({-1, shape_.head_dim}).index_copy_(0, slots_, k.reshape({-1, shape_.head_dim}));
  values_[index].view({-1, shape_.head_dim}).index_copy_(0, slots_, v.reshape({-1, shape_.head_dim}));
}

void KeyValueCache::begin_token() {
  const std::int64_t in_use = longest() + 1;
  if (in_use > shape_.capacity) {
    throw Error(fmt::format("generation: the cache of {} tokens per sequence is full", shape_.capacity));
  }
  slots_ = slots(at::arange(shape_.num_sequences, lengths_.options()), lengths_);
  offset_ = (at::arange(in_use, lengths_.options()) - lengths_.unsqueeze(1)).unsqueeze(1);
  biases_.clear();
}

const at::Tensor& KeyValueCache::bias_of(const kernels::PackedAttention& how) {
  at::Tensor& bias = biases_[how.window];
  if (bias.defined()) return bias;
  const std::int64_t H = how.alibi_slopes ? how.alibi_slopes->numel() : 1;
  bias = at::zeros({shape_.num_sequences, H, offset_.size(2)}, lengths_.options().dtype(at::kFloat));
  if (how.alibi_slopes) bias += how.alibi_slopes->view({1, -1, 1}) * offset_;
  bias.masked_fill_(offset_ > 0, -std::numeric_limits<float>::infinity());
  if (how.window > 0) bias.masked_fill_(offset_ <= -how.window, -std::numeric_limits<float>::infinity());
  return bias;
}

at::Tensor KeyValueCache::attend(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const kernels::PackedAttention& how) {
  store(layer, k, v);
  const auto index = static_cast<std::size_t>(layer);
  const std::int64_t B = shape_.num_sequences, Hkv = shape_.num_heads, D = shape_.head_dim, lanes = B * Hkv;
  const std::int64_t H = q.size(1), G = H / Hkv, L = offset_.size(2);
  // [B * Hkv, L, D]: views, since the lanes of one head lie one capacity apart.
  const at::Tensor keys = keys_[index].view({lanes, shape_.capacity, D}).narrow(1, 0, L);
  const at::Tensor values = values_[index].view({lanes, shape_.capacity, D}).narrow(1, 0, L);
  const at::Tensor scores = at::bmm(q.reshape({lanes, G, D}), keys.transpose(1, 2)).view({B, H, L});
  const double scale = how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(D));
  // In float32: bf16 has no bits for the fraction of a bias of a few hundred.
  const at::Tensor probabilities = at::softmax(at::add(bias_of(how), scores, scale), -1);
  return at::bmm(probabilities.to(values.scalar_type()).view({lanes, G, L}), values).view({B, H, D});
}

void KeyValueCache::end_token() {
  lengths_ += 1;
  for (std::int64_t& length : host_lengths_) ++length;
}

void KeyValueCache::keep(const std::vector<std::int64_t>& rows) {
  const at::Tensor index = at::tensor(rows, at::kLong).to(lengths_.device());
  for (at::Tensor& keys : keys_) keys = keys.index_select(0, index);
  for (at::Tensor& values : values_) values = values.index_select(0, index);
  lengths_ = lengths_.index_select(0, index);
  std::vector<std::int64_t> kept;
  for (const std::int64_t row : rows) kept.push_back(host_lengths_[static_cast<std::size_t>(row)]);
  host_lengths_ = kept;
  shape_.num_sequences = static_cast<std::int64_t>(rows.size());
}

std::int64_t KeyValueCache::longest() const {
  return host_lengths_.empty() ? 0 : *std::max_element(host_lengths_.begin(), host_lengths_.end());
}

bool KeyValueCache::passes_next(double length) const {
  return std::ranges::any_of(host_lengths_, [&](std::int64_t own) {
    return static_cast<double>(own) <= length && static_cast<double>(own + 1) > length;
  });
}

}  // namespace tessera
