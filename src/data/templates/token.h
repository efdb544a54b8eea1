// A template as tokens: text between tags, and names, literals and operators within them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/templates/source_text.h"

namespace tessera::internal::jinja {

struct Token {
  enum class Kind { kData, kPrintBegin, kPrintEnd, kTagBegin, kTagEnd, kName, kText, kInteger, kReal, kOperator, kEnd };

  Kind kind = Kind::kEnd;
  Offset offset = 0;
  std::string text = {};  // of a literal: its value; of an operator: itself
  std::int64_t integer = 0;
  double real = 0;

  bool is(std::string_view name_or_operator) const {
    return (kind == Kind::kName || kind == Kind::kOperator) && text == name_or_operator;
  }
};

// Ends in one kEnd. White space around tags is already removed as trim_blocks, lstrip_blocks and the signs of the tags
// (-, +) say. Throws UsageError.
std::vector<Token> tokens_of(const SourceText& source);

// The literal that begins at `offset`, and how many bytes it has; kind kEnd: none does.
struct Literal {
  Token token;
  std::size_t num_bytes = 0;
};
Literal read_number(const SourceText& source, Offset offset);
Literal read_text(const SourceText& source, Offset offset);

}  // namespace tessera::internal::jinja
