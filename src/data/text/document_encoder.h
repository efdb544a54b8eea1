// Documents as sequences of tokens, every one of which counts: for language modelling on plain text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/text/encoded_row.h"
#include "data/tokenizer/tokenizer.h"

namespace tessera {

struct DocumentOptions {
  std::int64_t max_length = 1024;  // longer documents become several sequences; 0: they stay whole
  bool ends_documents = true;      // by the tokenizer's end token, where the text has none
  std::string column = "text";
};

// Immutable, safe from any number of threads; the tokenizer must outlive it.
class DocumentEncoder {
 public:
  // Throws UsageError if documents are to be ended and the tokenizer names no end token.
  DocumentEncoder(const Tokenizer& tokenizer, DocumentOptions options);

  // The column of a row: a text. An empty one gives nothing; where documents stay whole, a sequence of no tokens, since
  // it has its place among the rows that are cut together (kRowsPerGroup).
  std::vector<EncodedRow> encode(const Json& row) const;
  // Everything that decides what encode() gives, besides the tokenizer: for the key of caches.
  std::string description() const;

 private:
  const Tokenizer& tokenizer_;
  DocumentOptions options_;
};

}  // namespace tessera
