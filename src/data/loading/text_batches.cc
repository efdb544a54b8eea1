#include "data/loading/text_batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "data/text/qa_sequence.h"

namespace tessera {

namespace {

// Lengths of rows that fill up to `num_missing` tokens, none longer than the longest real one: a model may have no
// positions for more.
std::vector<std::int64_t> filling_lengths(std::int64_t num_missing, std::int64_t longest) {
  std::vector<std::int64_t> lengths;
  for (; num_missing > 0; num_missing -= lengths.back()) lengths.push_back(std::min(num_missing, longest));
  return lengths;
}

}  // namespace

PackedBatch pack_rows(const TokenStore& tokens, std::span<const std::int64_t> rows, const PackOptions& options) {
  PackedBatch batch;
  std::int64_t num_tokens = 0;
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= tokens.size()) throw Error(fmt::format("a batch asks for row {} of {}", row, tokens.size()));
    num_tokens += tokens.length(row);
    batch.max_seqlen = std::max(batch.max_seqlen, tokens.length(row));
  }
  const auto filling = filling_lengths(options.num_tokens(num_tokens) - num_tokens, batch.max_seqlen);
  num_tokens = std::accumulate(filling.begin(), filling.end(), num_tokens);
  if (num_tokens > std::numeric_limits<std::int32_t>::max()) {
    throw Error(fmt::format("a batch of {} tokens is too large: at most 2^31 - 1", num_tokens));
  }
  const auto longs = at::TensorOptions().dtype(at::kLong).pinned_memory(options.pins);
  batch.input_ids = at::empty({num_tokens}, longs);
  batch.positions = at::empty({num_tokens}, longs);
  batch.targets = at::empty({num_tokens}, longs);
  batch.cu_seqlens = at::empty({std::ssize(rows) + std::ssize(filling) + 1}, longs.dtype(at::kInt));
  std::int64_t* ids = batch.input_ids.mutable_data_ptr<std::int64_t>();
  std::int64_t* positions = batch.positions.mutable_data_ptr<std::int64_t>();
  std::int64_t* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  std::int32_t* starts = batch.cu_seqlens.mutable_data_ptr<std::int32_t>();
  std::int32_t start = 0;
  *starts++ = 0;
  const auto end_row = [&](std::int64_t length) {
    std::iota(positions + start, positions + start + length, std::int64_t{0});
    start += static_cast<std::int32_t>(length);
    *starts++ = start;
  };
  for (const std::int64_t row : rows) {
    const auto row_targets = tokens.targets(row);
    const std::int64_t length = tokens.length(row);
    std::copy_n(tokens.ids(row).begin(), length, ids + start);
    std::copy_n(row_targets.begin(), length, targets + start);
    batch.num_counted += length - std::count(row_targets.begin(), row_targets.end(), kIgnoredTarget);
    end_row(length);
  }
  for (const std::int64_t length : filling) {
    std::fill_n(ids + start, length, std::int64_t{0});  // any token: nothing comes of it
    std::fill_n(targets + start, length, kIgnoredTarget);
    end_row(length);
  }
  batch.counted = at::empty({batch.num_counted}, longs);
  std::int64_t* counted = batch.counted.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < num_tokens; ++i) {
    if (targets[i] != kIgnoredTarget) *counted++ = i;
  }
  return batch;
}

PrefetchLoader<PackedBatch> text_loader(const TokenStore& tokens, std::vector<std::vector<std::int64_t>> batches,
                                        std::int64_t begin, PrefetchOptions options, const PackOptions& packing) {
  if (begin < 0) throw Error(fmt::format("a loader cannot begin with batch {}", begin));
  const auto shared = std::make_shared<const std::vector<std::vector<std::int64_t>>>(std::move(batches));
  if (!options.name_of) options.name_of = [](std::int64_t i) { return fmt::format("batch {}", i); };
  return PrefetchLoader<PackedBatch>(
      begin, std::ssize(*shared),
      [&tokens, shared, packing](std::int64_t i) {
        return pack_rows(tokens, (*shared)[static_cast<std::size_t>(i)], packing);
      },
      std::move(options));
}

}  // namespace tessera
