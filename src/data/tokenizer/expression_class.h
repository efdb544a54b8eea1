// Parts of expressions that stand for one character: escapes and classes. See expression.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer/code_point_set.h"

namespace tessera::internal {

// The reading position in an expression, character by character.
class ExpressionReader {
 public:
  ExpressionReader(const std::string& expression, const std::string& where);

  bool at_end() const { return at_ == text_.size(); }
  char32_t peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0'; }
  char32_t take();
  bool take_if(std::u32string_view wanted);
  std::size_t position() const { return at_; }
  void go_back_to(std::size_t position) { at_ = position; }

  // "where: the expression "...": what is not supported"
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  std::u32string text_;
  std::size_t at_ = 0;
  std::string expression_, where_;
};

struct SingleCharacter {
  std::optional<char32_t> literal;  // else `set`
  CodePointSet set;
};

// Reads what follows a backslash, which has been read; nothing, with the reader unmoved, if it is not a single
// character (\b, \A, ...).
std::optional<SingleCharacter> read_escape(ExpressionReader& reader, bool in_class);
// Reads what follows '[', which has been read, up to its ']'.
SingleCharacter read_class(ExpressionReader& reader);

}  // namespace tessera::internal
