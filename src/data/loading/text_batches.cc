#include "data/loading/text_batches.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "tessera/ignored_target.h"

namespace tessera {

namespace {

using Numbers = std::vector<std::int64_t>;

// Pieces that are one sequence: several only where attention crosses documents.
using Sequence = std::span<const TokenPiece>;

std::int64_t length_of(Sequence sequence) {
  std::int64_t sum = 0;
  for (const TokenPiece& piece : sequence) sum += piece.length;
  return sum;
}

// Lengths of rows that fill up to `num_missing` tokens, none longer than the longest real one: a model may have no
// positions for more.
Numbers filling_lengths(std::int64_t num_missing, std::int64_t longest) {
  Numbers lengths;
  for (; num_missing > 0; num_missing -= lengths.back()) lengths.push_back(std::min(num_missing, longest));
  return lengths;
}

// Whether the last token before this piece, of another one, has to predict its first token.
bool is_predicted(const TokenRows& tokens, const TokenPiece& piece) {
  return piece.length > 0 && tokens.counts_as_target(piece.row, piece.begin);
}

// Ids and targets of a sequence; returns how many targets count.
std::int64_t write_sequence(const TokenRows& tokens, Sequence sequence, std::int64_t* ids, std::int64_t* targets) {
  std::int64_t num_written = 0, num_counted = 0;
  for (const TokenPiece& piece : sequence) {
    std::copy_n(tokens.ids(piece).begin(), piece.length, ids + num_written);
    tokens.copy_targets(piece, targets + num_written);
    num_counted += tokens.num_counted(piece);
    if (num_written > 0 && is_predicted(tokens, piece)) {
      targets[num_written - 1] = ids[num_written];
      ++num_counted;
    }
    num_written += piece.length;
  }
  return num_counted;
}

// int64 on the host; also pinned where the options say so.
at::Tensor new_numbers(std::int64_t count, const PackOptions& options, at::ScalarType type = at::kLong) {
  return at::empty({count}, at::TensorOptions().dtype(type).pinned_memory(options.pins));
}

PackedBatch pack_sequences(const TokenRows& tokens, std::span<const Sequence> sequences, const PackOptions& options) {
  PackedBatch batch;
  std::int64_t num_tokens = 0;
  for (const Sequence sequence : sequences) {
    num_tokens += length_of(sequence);
    batch.max_seqlen = std::max(batch.max_seqlen, length_of(sequence));
  }
  const Numbers filling = filling_lengths(options.num_tokens(num_tokens) - num_tokens, batch.max_seqlen);
  num_tokens = std::accumulate(filling.begin(), filling.end(), num_tokens);
  if (num_tokens > std::numeric_limits<std::int32_t>::max()) {
    throw Error(fmt::format("a batch of {} tokens is too large: at most 2^31 - 1", num_tokens));
  }
  batch.input_ids = new_numbers(num_tokens, options);
  batch.positions = new_numbers(num_tokens, options);
  batch.targets = new_numbers(num_tokens, options);
  batch.cu_seqlens = new_numbers(std::ssize(sequences) + std::ssize(filling) + 1, options, at::kInt);
  std::int64_t* ids = batch.input_ids.mutable_data_ptr<std::int64_t>();
  std::int64_t* positions = batch.positions.mutable_data_ptr<std::int64_t>();
  std::int64_t* targets = batch.targets.mutable_data_ptr<std::int64_t>();
  std::int32_t* starts = batch.cu_seqlens.mutable_data_ptr<std::int32_t>();
  std::int32_t start = 0;
  *starts++ = 0;
  const auto end_sequence = [&](std::int64_t length) {
    std::iota(positions + start, positions + start + length, std::int64_t{0});
    start += static_cast<std::int32_t>(length);
    *starts++ = start;
  };
  for (const Sequence sequence : sequences) {
    batch.num_counted += write_sequence(tokens, sequence, ids + start, targets + start);
    end_sequence(length_of(sequence));
  }
  for (const std::int64_t length : filling) {
    std::fill_n(ids + start, length, std::int64_t{0});  // any token: nothing comes of it
    std::fill_n(targets + start, length, std::int64_t{kIgnoredTarget});
    end_sequence(length);
  }
  batch.counted = new_numbers(batch.num_counted, options);
  std::int64_t* counted = batch.counted.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < num_tokens; ++i) {
    if (targets[i] != kIgnoredTarget) *counted++ = i;
  }
  return batch;
}

using Pack = std::function<PackedBatch(const Numbers&)>;

PrefetchLoader<PackedBatch> loader_of(Pack pack, std::vector<Numbers> batches, std::int64_t begin,
                                      PrefetchOptions options) {
  if (begin < 0) throw Error(fmt::format("a loader cannot begin with batch {}", begin));
  const auto shared = std::make_shared<const std::vector<Numbers>>(std::move(batches));
  if (!options.name_of) options.name_of = [](std::int64_t i) { return fmt::format("batch {}", i); };
  return PrefetchLoader<PackedBatch>(
      begin, std::ssize(*shared),
      [shared, pack = std::move(pack)](std::int64_t i) { return pack((*shared)[static_cast<std::size_t>(i)]); },
      std::move(options));
}

}  // namespace

PackedBatch pack_rows(const TokenRows& tokens, std::span<const std::int64_t> rows, const PackOptions& options) {
  std::vector<TokenPiece> pieces;
  for (const std::int64_t row : rows) {
    if (row < 0 || row >= tokens.size()) throw Error(fmt::format("a batch asks for row {} of {}", row, tokens.size()));
    pieces.push_back(tokens.whole(row));
  }
  std::vector<Sequence> sequences;
  for (const TokenPiece& piece : pieces) sequences.emplace_back(&piece, 1);
  return pack_sequences(tokens, sequences, options);
}

PackedBatch pack_bins(const TokenRows& tokens, const PackedRows& bins, std::span<const std::int64_t> numbers,
                      const PackOptions& options) {
  std::vector<Sequence> sequences;
  for (const std::int64_t number : numbers) {
    const Sequence bin = bins.bin(number);
    if (options.attention_across_documents) {
      sequences.push_back(bin);
    } else {
      for (const TokenPiece& piece : bin) sequences.emplace_back(&piece, 1);
    }
  }
  return pack_sequences(tokens, sequences, options);
}

std::int64_t num_counted_in(const TokenRows& tokens, std::span<const TokenPiece> bin, bool attention_across_documents) {
  std::int64_t num_counted = 0, num_before = 0;
  for (const TokenPiece& piece : bin) {
    num_counted += tokens.num_counted(piece);
    if (attention_across_documents && num_before > 0 && is_predicted(tokens, piece)) ++num_counted;
    num_before += piece.length;
  }
  return num_counted;
}

PackedRows counted_bins(const TokenRows& tokens, PackedRows bins, const CountedBins& options) {
  const auto counts = [&](std::span<const TokenPiece> bin) {
    const auto is_long = [](const TokenPiece& piece) { return piece.length > 1; };
    return (options.takes_long_pieces && std::ranges::any_of(bin, is_long)) ||
           num_counted_in(tokens, bin, options.attention_across_documents) > 0;
  };
  Numbers offsets = {0};
  std::vector<TokenPiece> pieces;
  for (std::int64_t number = 0; number < bins.size(); ++number) {
    const std::span<const TokenPiece> bin = bins.bin(number);
    if (!counts(bin)) continue;
    pieces.insert(pieces.end(), bin.begin(), bin.end());
    offsets.push_back(std::ssize(pieces));
  }
  return {std::move(offsets), std::move(pieces)};
}

PrefetchLoader<PackedBatch> text_loader(TokenRows tokens, std::vector<Numbers> batches, std::int64_t begin,
                                        PrefetchOptions options, const PackOptions& packing) {
  return loader_of(
      [tokens = std::move(tokens), packing](const Numbers& rows) { return pack_rows(tokens, rows, packing); },
      std::move(batches), begin, std::move(options));
}

PrefetchLoader<PackedBatch> text_loader(TokenRows tokens, std::shared_ptr<const PackedRows> bins,
                                        std::vector<Numbers> batches, std::int64_t begin, PrefetchOptions options,
                                        const PackOptions& packing) {
  return loader_of([tokens = std::move(tokens), bins = std::move(bins),
                    packing](const Numbers& numbers) { return pack_bins(tokens, *bins, numbers, packing); },
                   std::move(batches), begin, std::move(options));
}

}  // namespace tessera
