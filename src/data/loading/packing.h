// Rows of tokens packed into bins: what a model sees as one row of at most `max_length` positions. Nothing is padded;
// a bin that is not full is just shorter.
//
// Bins are a function of the lengths and the settings alone: the same for every number of ranks and every resume. A
// Sampler draws bins as it draws rows. 100 million rows take seconds, and some 30 bytes each
// while they are packed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/text/token_store.h"

namespace tessera {

// Bins of pieces in two flat arrays: bin b has the pieces offsets[b] to offsets[b + 1].
class PackedRows {
 public:
  PackedRows() : offsets_{0} {}
  PackedRows(std::vector<std::int64_t> offsets, std::vector<TokenPiece> pieces);

  std::int64_t size() const { return std::ssize(offsets_) - 1; }
  std::span<const TokenPiece> bin(std::int64_t number) const;
  std::span<const TokenPiece> pieces() const { return pieces_; }  // of all bins
  std::int64_t num_tokens(std::int64_t bin) const;

  // Pieces of rows[i] in place of row i: for bins of a selection of rows, such as a mix.
  PackedRows of_rows(std::span<const std::int64_t> rows) &&;

 private:
  std::vector<std::int64_t> offsets_;
  std::vector<TokenPiece> pieces_;
};

// The share of the bins' positions that no token fills: 0 to 1.
double share_unfilled(const PackedRows& bins, std::int64_t max_length);

// Best fit decreasing: the longest row first, each into the fullest bin that still has room for it. Rows stay whole;
// those without tokens are in no bin. The seed decides among rows of equal length, and the order of the bins. Throws
// Error if a row is longer than max_length.
PackedRows pack_best_fit(std::span<const std::int32_t> lengths, std::int64_t max_length, std::uint64_t seed);

// What `datasets` maps at a time, and so what transformers' run_clm joins before it cuts.
inline constexpr std::int64_t kRowsPerGroup = 1000;

struct WrapOptions {
  std::int64_t max_length = 0;
  std::int64_t rows_per_group = 0;  // that are cut together; 0: all
  bool drops_rest = false;          // of each group, what does not fill a bin: as transformers' run_clm
};

// All rows end to end in their order, cut every max_length tokens.
PackedRows pack_wrapped(std::span<const std::int32_t> lengths, const WrapOptions& options);

}  // namespace tessera
