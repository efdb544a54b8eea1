// Numbers and texts in expressions, as Python reads them.
#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/text.h"
#include "data/templates/token.h"
#include "data/tokenizer/characters.h"

namespace tessera::internal::jinja {
namespace {

bool is_digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0' < base;
  const char lower = static_cast<char>(c | 0x20);
  return base == 16 && lower >= 'a' && lower <= 'f';
}

// Digits with single underscores between them, added to `digits`; where they end.
std::size_t read_digits(std::string_view text, std::size_t at, int base, std::string& digits) {
  while (at < text.size()) {
    const bool is_separated = text[at] == '_' && at + 1 < text.size() && is_digit_of(text[at + 1], base);
    if (is_separated && !digits.empty()) ++at;
    if (!is_digit_of(text[at], base)) break;
    digits += text[at++];
  }
  return at;
}

int base_of(std::string_view text) {
  if (text.size() < 3 || text[0] != '0') return 10;
  const char mark = static_cast<char>(text[1] | 0x20);
  const int base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  return base != 10 && is_digit_of(text[2], base) ? base : 10;
}

// The fraction and the exponent behind whole digits, added to `digits`; where they end.
std::size_t read_fraction(std::string_view text, std::size_t at, std::string& digits) {
  std::string part;
  if (at + 1 < text.size() && text[at] == '.' && is_digit_of(text[at + 1], 10)) {
    at = read_digits(text, at + 1, 10, part);
    digits += "." + part;
  }
  std::size_t exponent = at;
  if (exponent < text.size() && (text[exponent] | 0x20) == 'e') ++exponent;
  if (exponent == at) return at;
  std::string sign;
  if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) sign = text[exponent++];
  part.clear();
  const std::size_t end = read_digits(text, exponent, 10, part);
  if (part.empty()) return at;
  digits += "e" + (sign == "-" ? sign : "") + part;
  return end;
}

char32_t read_code(const SourceText& source, std::string_view text, std::size_t at, std::size_t num_digits,
                   Offset begin) {
  std::uint32_t code = 0;
  const char* const first = text.data() + at;
  const std::size_t available = at < text.size() ? text.size() - at : 0;
  const auto result = std::from_chars(first, first + std::min(num_digits, available), code, 16);
  if (available < num_digits || result.ptr != first + num_digits) {
    source.refuse(begin, fmt::format("expected {} hexadecimal digits after the \\ escape of this text", num_digits));
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    source.refuse(begin, "expected escapes of characters in this text, found a number that no character has");
  }
  return code;
}

// The text that one escape stands for, and where it ends.
std::size_t unescape(const SourceText& source, std::string_view text, std::size_t at, Offset begin,
                     std::string& value) {
  static constexpr std::string_view kNames = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const char c = text[at + 1];
  if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
    value += kMeanings[known];
    return at + 2;
  }
  if (c == '\n') return at + 2;  // a line that continues
  if (c >= '0' && c <= '7') {
    std::size_t end = at + 1;
    char32_t code = 0;
    for (; end < text.size() && end < at + 4 && text[end] >= '0' && text[end] <= '7'; ++end) {
      code = code * 8 + static_cast<char32_t>(text[end] - '0');
    }
    append_utf8(value, code);
    return end;
  }
  if (c == 'N') source.refuse(begin, "\\N{...} is not supported in a text");
  if (const std::size_t num_digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0; num_digits > 0) {
    append_utf8(value, read_code(source, text, at + 2, num_digits, begin));
    return at + 2 + num_digits;
  }
  value += '\\';  // others are no escapes
  return at + 1;
}

}  // namespace

Literal read_number(const SourceText& source, Offset offset) {
  const std::string_view text = source.text().substr(offset);
  if (text.empty() || !is_digit_of(text[0], 10)) return {};
  const int base = base_of(text);
  std::string digits;
  const std::size_t end = read_digits(text, base == 10 ? 0 : 2, base, digits);
  Literal literal{{Token::Kind::kInteger, offset}, end};
  if (base == 10) {
    const bool is_item = offset > 0 && source.text()[offset - 1] == '.';  // as in pairs.0.1
    const std::size_t real_end = is_item ? end : read_fraction(text, end, digits);
    if (real_end > end) {
      literal.num_bytes = real_end;
      literal.token.kind = Token::Kind::kReal;
      // Too large or too small for from_chars: Python takes infinity or 0.
      const char* const last = digits.data() + digits.size();
      if (std::from_chars(digits.data(), last, literal.token.real).ec != std::errc()) {
        literal.token.real = std::strtod(digits.c_str(), nullptr);
      }
      return literal;
    }
    if (digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) {
      source.refuse(offset, "expected a number without zeros before it");
    }
  }
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), literal.token.integer, base);
  if (result.ec != std::errc()) source.refuse(offset, "whole numbers beyond 64 bits are not supported");
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
