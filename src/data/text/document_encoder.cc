#include "data/text/document_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

DocumentEncoder::DocumentEncoder(const Tokenizer& tokenizer, DocumentOptions options)
    : tokenizer_(tokenizer), options_(std::move(options)) {
  if (options_.ends_documents && !tokenizer_.eos_id()) {
    throw UsageError("the tokenizer names no end token, which ends each document: --append_eos_token false");
  }
}

std::string DocumentEncoder::description() const {
  return fmt::format("documents 2 length {} ends {} column {}", options_.max_length, options_.ends_documents,
                     options_.column);
}

std::vector<EncodedRow> DocumentEncoder::encode(const Json& row) const {
  const auto text = row.find(options_.column);
  if (text == row.end() || text->is_null()) {
    std::vector<std::string> columns;
    for (const auto& [name, value] : row.items()) columns.push_back(name);
    throw UsageError(fmt::format("it has no \"{}\" but {}: name the column of its text by --text_column_name",
                                 options_.column, join(columns, ", ")));
  }
  if (!text->is_string()) throw UsageError(fmt::format("\"{}\": expected a text", options_.column));
  std::vector<std::int32_t> ids = tokenizer_.encode(text->get_ref<const std::string&>());
  if (!ids.empty() && options_.ends_documents && ids.back() != *tokenizer_.eos_id()) {
    ids.push_back(*tokenizer_.eos_id());
  }
  if (options_.max_length == 0) return {{.ids = std::move(ids), .counted = {}}};
  const auto most = static_cast<std::size_t>(options_.max_length);
  std::vector<EncodedRow> sequences;
  for (std::size_t begin = 0; begin < ids.size(); begin += most) {
    const auto from = ids.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto length = static_cast<std::ptrdiff_t>(std::min(most, ids.size() - begin));
    sequences.push_back({.ids = {from, from + length}, .counted = {}});
  }
  return sequences;
}

}  // namespace tessera
