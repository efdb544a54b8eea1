// Numbers and texts in expressions, as Python reads them.
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/text.h"
#include "data/templates/token.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

constexpr std::string_view kDigits = "0123456789";

bool is_digit(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

std::size_t end_of_digits(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(kDigits, at), text.size());
}

char32_t read_code(const SourceText& source, std::string_view digits, std::size_t num_digits, Offset begin) {
  std::uint32_t code = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < num_digits || result.ptr != digits.data() + num_digits) {
    source.refuse(begin, fmt::format("expected {} hexadecimal digits after the \\ escape of this text", num_digits));
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    source.refuse(begin, "expected escapes of characters in this text, found a number that no character has");
  }
  return code;
}

// Appends what the escape at `at` stands for; where it ends.
std::size_t unescape(const SourceText& source, std::string_view text, std::size_t at, Offset begin,
                     std::string& value) {
  static constexpr std::string_view kNames = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char c = text[at + 1];
  if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
    value += kMeanings[known];
    return at + 2;
  }
  if (const std::size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; num_digits > 0) {
    append_utf8(value, read_code(source, text.substr(at + 2, num_digits), num_digits, begin));
    return at + 2 + num_digits;
  }
  if (c == '\n' || c == 'N' || is_digit(text, at + 1)) {
    source.refuse(begin, fmt::format("the escape \\{} is not supported in a text", printable({&c, 1})));
  }
  value += '\\';  // others are no escapes
  return at + 1;
}

}  // namespace

Literal read_number(const SourceText& source, Offset offset) {
  const std::string_view text = source.text().substr(offset);
  if (!is_digit(text, 0)) return {};
  std::size_t end = end_of_digits(text, 0);
  Literal literal{{Token::Kind::kInteger, offset}, end};
  const bool is_item = offset > 0 && source.text()[offset - 1] == '.';  // as in pairs.0.1
  if (!is_item && end < text.size() && text[end] == '.' && is_digit(text, end + 1)) end = end_of_digits(text, end + 1);
  if (!is_item && end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const bool has_sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+');
    if (is_digit(text, end + 1 + (has_sign ? 1 : 0))) end = end_of_digits(text, end + 2);
  }
  const std::string digits(text.substr(0, end));
  if (end > literal.num_bytes) {
    literal.num_bytes = end;
    literal.token.kind = Token::Kind::kReal;
    literal.token.real = std::strtod(digits.c_str(), nullptr);
    return literal;
  }
  if (digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) {
    source.refuse(offset, "expected a number without zeros before it");
  }
  const auto whole = parse_integer(digits);
  if (!whole) source.refuse(offset, "whole numbers beyond 64 bits are not supported");
  literal.token.integer = *whole;
  return literal;
}

Literal read_text(const SourceText& source, Offset offset) {
  const std::string_view text = source.text();
  if (offset >= text.size() || (text[offset] != '\'' && text[offset] != '"')) return {};
  std::size_t end = offset + 1;
  while (end < text.size() && text[end] != text[offset]) end += text[end] == '\\' ? 2 : 1;
  if (end >= text.size()) source.refuse(offset, fmt::format("expected {} at the end of this text", text[offset]));
  Literal literal{{Token::Kind::kText, offset}, end + 1 - offset};
  const std::string_view inner = text.substr(0, end);
  for (std::size_t at = offset + 1; at < end;) {
    if (inner[at] == '\\') {
      at = unescape(source, inner, at, offset, literal.token.text);
    } else {
      literal.token.text += inner[at++];
    }
  }
  return literal;
}

}  // namespace tessera::internal::jinja
