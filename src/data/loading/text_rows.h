// What a text task draws from, one number after the other: rows of tokens, or bins of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/loading/packing.h"
#include "data/loading/text_batches.h"
#include "data/text/token_rows.h"

namespace tessera {

// A handle: copies are cheap and share everything. Any number of threads may read.
class TextRows {
 public:
  TextRows(TokenRows tokens);  // NOLINT: rows of tokens, each for itself
  TextRows(TokenRows tokens, PackedRows bins, bool attention_across_documents = false);

  const TokenRows& tokens() const { return tokens_; }
  std::int64_t size() const { return bins_ ? bins_->size() : tokens_.size(); }
  bool is_packed() const { return bins_ != nullptr; }
  std::int64_t num_tokens(std::int64_t number) const;
  std::int64_t num_counted(std::int64_t number) const;
  std::int64_t num_sequences(std::int64_t number) const;
  std::int64_t longest_sequence() const { return longest_; }

  PackedBatch pack(std::span<const std::int64_t> numbers, PackOptions options) const;
  PrefetchLoader<PackedBatch> loader(std::vector<std::vector<std::int64_t>> batches, std::int64_t begin,
                                     PrefetchOptions loading, PackOptions options) const;

 private:
  PackOptions with_attention(PackOptions options) const;

  TokenRows tokens_;
  std::shared_ptr<const PackedRows> bins_;  // null: each row for itself
  bool attention_across_documents_ = false;
  std::int64_t longest_ = 0;
};

}  // namespace tessera
