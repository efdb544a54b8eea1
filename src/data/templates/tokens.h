// The text of a template, messages about places in it, and its tokens: text between tags, and names, literals and
// operators within them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal::jinja {

using Offset = std::uint32_t;  // a byte of the text

class SourceText {
 public:
  // As Jinja2 reads it: \r\n and \r become \n, and one \n at the end goes. Throws UsageError where the text is not
  // UTF-8 or too long.
  SourceText(std::string_view text, std::string origin);

  std::string_view text() const { return text_; }
  std::string place(Offset offset) const;  // "model/chat_template.jinja:3:14"; columns count characters
  [[noreturn]] void refuse(Offset offset, const std::string& mistake) const;

 private:
  std::string text_, origin_;
};

struct Token {
  enum class Kind { kData, kPrintBegin, kPrintEnd, kTagBegin, kTagEnd, kName, kText, kInteger, kReal, kOperator, kEnd };

  Kind kind = Kind::kEnd;
  Offset offset = 0;
  std::string text = {};  // of a text: its value; of others: as they are written

  bool is(std::string_view name_or_operator) const {
    return (kind == Kind::kName || kind == Kind::kOperator) && text == name_or_operator;
  }
};

// Ends in one kEnd. White space around tags is already removed as trim_blocks, lstrip_blocks and the sign - of tags
// say. Throws UsageError.
std::vector<Token> tokens_of(const SourceText& source);

}  // namespace tessera::internal::jinja
