// Packed batches of rows of tokens, or of bins of them, and loaders of such batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/loading/packing.h"
#include "data/loading/prefetch_loader.h"
#include "data/text/token_rows.h"
#include "tessera/packed_batch.h"

namespace tessera {

struct PackOptions {
  bool pins = false;          // in page-locked memory, from which a GPU copies while it computes
  std::int64_t multiple = 1;  // of tokens: filled up to it by rows of which nothing is counted
  // A bin is one sequence: positions run through it, and the last token of a piece predicts the first of the next,
  // where that one counts. Otherwise each piece is a sequence of its own.
  bool attention_across_documents = false;

  // A GPU's libraries choose how to multiply matrices of a new size anew, some 0.2 ms each, and keep the choice: with a
  // multiple the sizes repeat.
  static PackOptions of(const at::Device& device) { return device.is_cuda() ? PackOptions{true, 128} : PackOptions{}; }
  std::int64_t num_tokens(std::int64_t of_rows) const { return (of_rows + multiple - 1) / multiple * multiple; }
};

// The rows end to end, in the given order. May be called from any thread, as all functions here.
PackedBatch pack_rows(const TokenRows& tokens, std::span<const std::int64_t> rows, const PackOptions& options = {});

// The bins with these numbers end to end, in the given order.
PackedBatch pack_bins(const TokenRows& tokens, const PackedRows& bins, std::span<const std::int64_t> numbers,
                      const PackOptions& options = {});
struct CountedBins {
  bool attention_across_documents = false;
  bool takes_long_pieces = false;  // all of two tokens or more, without a look at what counts of them
};
// The bins of which something counts. Others - a piece of a long prompt, or single tokens - might be all of an update,
// which then has no loss.
PackedRows counted_bins(const TokenRows& tokens, PackedRows bins, const CountedBins& options);
// The targets of a bin that count for the loss.
std::int64_t num_counted_in(const TokenRows& tokens, std::span<const TokenPiece> bin,
                            bool attention_across_documents = false);

// Batches in order from number `begin`, made ahead by worker threads. `batches` come from Sampler::batches().
PrefetchLoader<PackedBatch> text_loader(TokenRows tokens, std::vector<std::vector<std::int64_t>> batches,
                                        std::int64_t begin = 0, PrefetchOptions options = {},
                                        const PackOptions& packing = {});
// The same, where the batches hold numbers of bins.
PrefetchLoader<PackedBatch> text_loader(TokenRows tokens, std::shared_ptr<const PackedRows> bins,
                                        std::vector<std::vector<std::int64_t>> batches, std::int64_t begin = 0,
                                        PrefetchOptions options = {}, const PackOptions& packing = {});

}  // namespace tessera
