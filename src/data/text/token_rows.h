// The rows of one token store, or of several seen as one: the parts of a corpus, the corpora of a mix.
//
// A handle: copies are cheap and share the stores. Any number of threads may read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/text/token_store.h"

namespace tessera {

class TokenRows {
 public:
  TokenRows(TokenStore store);  // NOLINT: a store is rows
  explicit TokenRows(std::vector<TokenStore> parts);
  // One after the other: row i of the second is row first.size() + i.
  static TokenRows joined(std::span<const TokenRows> all);

  const TokenCounts& counts() const { return shared_->counts; }
  std::int64_t size() const { return shared_->counts.num_rows; }
  const std::vector<TokenStore>& parts() const { return shared_->parts; }

  std::int64_t length(std::int64_t row) const;
  std::vector<std::int32_t> lengths() const;  // of all rows

  // As those of TokenStore.
  TokenPiece whole(std::int64_t row) const { return {row, 0, static_cast<std::int32_t>(length(row))}; }
  std::span<const std::int32_t> ids(const TokenPiece& piece) const;
  void copy_targets(const TokenPiece& piece, std::int64_t* to) const;
  std::int64_t num_counted(const TokenPiece& piece) const;
  bool counts_as_target(std::int64_t row, std::int64_t place) const;
  std::span<const std::int32_t> ids(std::int64_t row) const { return ids(whole(row)); }
  std::vector<std::int32_t> targets(std::int64_t row) const;
  std::int64_t num_counted(std::int64_t row) const { return num_counted(whole(row)); }

 private:
  struct Shared {
    std::vector<TokenStore> parts;
    std::vector<std::int64_t> first_rows;  // of each part, then the number of all
    TokenCounts counts;
  };
  struct Place {
    const TokenStore& part;
    std::int64_t row;  // in the part
  };
  Place place_of(std::int64_t row) const;  // throws Error if there is no such row

  std::shared_ptr<const Shared> shared_;
};

}  // namespace tessera
