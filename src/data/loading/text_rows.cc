#include "data/loading/text_rows.h"

#include <algorithm>
#include <utility>

namespace tessera {

TextRows::TextRows(TokenRows tokens) : tokens_(std::move(tokens)), longest_(tokens_.counts().longest) {}

TextRows::TextRows(TokenRows tokens, PackedRows bins, bool attention_across_documents)
    : tokens_(std::move(tokens)),
      bins_(std::make_shared<const PackedRows>(std::move(bins))),
      attention_across_documents_(attention_across_documents) {
  if (attention_across_documents_) {
    for (std::int64_t bin = 0; bin < bins_->size(); ++bin) longest_ = std::max(longest_, bins_->num_tokens(bin));
  } else {
    for (const TokenPiece& piece : bins_->pieces()) longest_ = std::max<std::int64_t>(longest_, piece.length);
  }
}

std::int64_t TextRows::num_tokens(std::int64_t number) const {
  return bins_ ? bins_->num_tokens(number) : tokens_.length(number);
}

std::int64_t TextRows::num_counted(std::int64_t number) const {
  return bins_ ? num_counted_in(tokens_, bins_->bin(number), attention_across_documents_) : tokens_.num_counted(number);
}

std::int64_t TextRows::num_sequences(std::int64_t number) const {
  return bins_ && !attention_across_documents_ ? std::ssize(bins_->bin(number)) : 1;
}

PackOptions TextRows::with_attention(PackOptions options) const {
  options.attention_across_documents = attention_across_documents_;
  return options;
}

PackedBatch TextRows::pack(std::span<const std::int64_t> numbers, PackOptions options) const {
  return bins_ ? pack_bins(tokens_, *bins_, numbers, with_attention(options)) : pack_rows(tokens_, numbers, options);
}

PrefetchLoader<PackedBatch> TextRows::loader(std::vector<std::vector<std::int64_t>> batches, std::int64_t begin,
                                             PrefetchOptions loading, PackOptions options) const {
  if (!bins_) return text_loader(tokens_, std::move(batches), begin, std::move(loading), options);
  return text_loader(tokens_, bins_, std::move(batches), begin, std::move(loading), with_attention(options));
}

}  // namespace tessera
