#include "data/tokenizer/expression_class.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/utf8.h"

namespace tessera::internal {
namespace {

bool is_ascii_letter_or_digit(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z');
}

std::optional<unsigned> hex_digit(char32_t c) {
  if (c >= U'0' && c <= U'9') return c - U'0';
  if (c >= U'a' && c <= U'f') return c - U'a' + 10;
  if (c >= U'A' && c <= U'F') return c - U'A' + 10;
  return std::nullopt;
}

char32_t read_hex(ExpressionReader& reader, int max_digits) {
  char32_t value = 0;
  int count = 0;
  while (count < max_digits && hex_digit(reader.peek())) {
    value = value * 16 + *hex_digit(reader.take());
    ++count;
  }
  if (count == 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    reader.refuse("a number that is not a character's");
  }
  return value;
}

SingleCharacter literal(char32_t c) {
  return {c, {}};
}
SingleCharacter set_of(CodePointSet set, bool negate) {
  return {std::nullopt, negate ? set.complement() : std::move(set)};
}

// \p{...}, after "\p" has been read.
SingleCharacter read_property(ExpressionReader& reader, bool negate) {
  if (!reader.take_if(U"{")) reader.refuse("\\p without braces");
  if (reader.take_if(U"^")) negate = !negate;
  std::string name;
  while (!reader.at_end() && reader.peek() != U'}') append_utf8(name, reader.take());
  if (!reader.take_if(U"}")) reader.refuse("\\p{ without }");
  if (lower_case(name) == "any") return set_of(CodePointSet().complement(), negate);
  const auto ranges = category_ranges(name);
  if (!ranges) {
    reader.refuse(fmt::format("the property \\p{{{}}}; supported are general categories (L, Lu, N, Nd, P, ...)",
                              printable(name, 60)));
  }
  return set_of(CodePointSet(*ranges), negate);
}

// Oniguruma includes the six superscript digits and fractions of Latin-1 in \w, but not in [\w].
CodePointSet word_characters(bool in_class) {
  const CodePointSet all(flag_ranges(kWord));
  return in_class ? all.intersection(CodePointSet(flag_ranges(kPlainWord))) : all;
}

const CodePointSet& hex_digits() {
  static const CodePointSet set({{U'0', U'9'}, {U'A', U'F'}, {U'a', U'f'}});
  return set;
}

// [:space:] and the like, after "[:" has been read. Letter classes mean other sets than \p{L}: refused.
SingleCharacter read_posix(ExpressionReader& reader) {
  const bool negate = reader.take_if(U"^");
  if (reader.take_if(U"space:]")) return set_of(CodePointSet(flag_ranges(kSpace)), negate);
  if (reader.take_if(U"digit:]")) return set_of(CodePointSet(*category_ranges("Nd")), negate);
  if (reader.take_if(U"word:]")) return set_of(word_characters(true), negate);
  if (reader.take_if(U"xdigit:]")) return set_of(hex_digits(), negate);
  reader.refuse("a class [:...:] other than space, digit, word and xdigit");
}

// One member of a class: a character, an escape or a class within it.
SingleCharacter read_member(ExpressionReader& reader) {
  if (reader.take_if(U"[:")) return read_posix(reader);
  if (reader.take_if(U"[")) return read_class(reader);
  if (reader.peek() != U'\\') return literal(reader.take());
  reader.take();
  if (reader.peek() == U'b') reader.refuse("\\b in a class");
  auto member = read_escape(reader, true);
  if (!member) reader.refuse("an escape in a class that is not a character");
  return *member;
}

}  // namespace

ExpressionReader::ExpressionReader(const std::string& expression, const std::string& where)
    : text_(to_utf32(expression)), expression_(expression), where_(where) {}

char32_t ExpressionReader::take() {
  if (at_end()) refuse("it ends too early");
  return text_[at_++];
}

bool ExpressionReader::take_if(std::u32string_view wanted) {
  if (!std::u32string_view(text_).substr(at_).starts_with(wanted)) return false;
  at_ += wanted.size();
  return true;
}

void ExpressionReader::refuse(const std::string& what) const {
  throw UsageError(fmt::format("{}: the expression \"{}\" cannot be used: not supported at character {}: {}", where_,
                               printable(expression_, 200), at_ + 1, what));
}

std::optional<SingleCharacter> read_escape(ExpressionReader& reader, bool in_class) {
  const std::size_t begin = reader.position();
  const char32_t c = reader.take();
  switch (c) {
    case U's':
    case U'S':
      return set_of(CodePointSet(flag_ranges(kSpace)), c == U'S');
    case U'd':
    case U'D':
      return set_of(CodePointSet(*category_ranges("Nd")), c == U'D');
    case U'w':
    case U'W':
      return set_of(word_characters(in_class), c == U'W');
    case U'h':
    case U'H':
      return set_of(hex_digits(), c == U'H');
    case U'p':
    case U'P':
      return read_property(reader, c == U'P');
    case U't':
      return literal(U'\t');
    case U'n':
      return literal(U'\n');
    case U'r':
      return literal(U'\r');
    case U'f':
      return literal(U'\f');
    case U'v':
      return literal(U'\v');
    case U'a':
      return literal(U'\a');
    case U'e':
      return literal(U'\x1B');
    case U'x': {
      if (!reader.take_if(U"{")) {
        const char32_t value = read_hex(reader, 2);
        // Above this, Oniguruma reads it as a byte of a character.
        if (value > 0x7F) reader.refuse("\\x with a non-ASCII byte");
        return literal(value);
      }
      const char32_t value = read_hex(reader, 8);
      if (!reader.take_if(U"}")) reader.refuse("\\x{ without }");
      return literal(value);
    }
    case U'u': {
      const std::size_t digits = reader.position();
      const char32_t value = read_hex(reader, 4);
      if (reader.position() != digits + 4) reader.refuse("\\u with fewer than four digits");
      return literal(value);
    }
    default:
      if (!is_ascii_letter_or_digit(c)) return literal(c);
      reader.go_back_to(begin);
      return std::nullopt;
  }
}

SingleCharacter read_class(ExpressionReader& reader) {
  const bool negate = reader.take_if(U"^");
  SingleCharacter result;
  std::optional<CodePointSet> left_of_and;  // a&&b is the intersection of everything left and right of it
  const auto finish_operand = [&] {
    left_of_and = left_of_and ? left_of_and->intersection(result.set) : result.set;
    result.set = {};
  };
  bool first = true;
  while (first || reader.peek() != U']') {
    if (reader.at_end()) reader.refuse("[ without ]");
    if (!first && reader.take_if(U"&&")) {
      finish_operand();
      continue;
    }
    if (first && reader.peek() == U']') {  // [] is not an empty class here
      reader.refuse("a class that begins with ']'; write \\]");
    }
    first = false;
    SingleCharacter member = read_member(reader);
    if (!member.literal) {
      result.set.add(member.set);
      continue;
    }
    char32_t last = *member.literal;
    if (reader.peek() == U'-' && reader.peek(1) != U']' && !reader.at_end()) {
      reader.take();
      const SingleCharacter end = read_member(reader);
      if (!end.literal || *end.literal < last) reader.refuse("a range in a class without a valid end");
      last = *end.literal;
    }
    result.set.add(*member.literal, last);
  }
  reader.take();
  if (left_of_and) {
    finish_operand();
    result.set = std::move(*left_of_and);
  }
  if (negate) result.set = result.set.complement();
  return result;
}

}  // namespace tessera::internal
