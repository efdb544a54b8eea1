// Values as Python prints them.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "data/templates/python.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

void append_escaped(std::string& text, char32_t c, char quote) {
  if (c == static_cast<char32_t>(quote) || c == '\\') {
    text += '\\';
    text += static_cast<char>(c);
  } else if (c == '\n') {
    text += "\\n";
  } else if (c == '\r') {
    text += "\\r";
  } else if (c == '\t') {
    text += "\\t";
  } else if (is_printable(c)) {
    append_utf8(text, c);
  } else if (c < 0x100) {
    text += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  } else {
    text += c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                        : fmt::format("\\U{:08x}", static_cast<unsigned>(c));
  }
}

void append_quoted(Rendering& rendering, std::string& text, const std::string& value) {
  rendering.spend_repeated(value.size(), 4);
  const bool has_single = value.find('\'') != std::string::npos, has_double = value.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  text += quote;
  for_each_character(value, [&](char32_t c, std::size_t, std::size_t) { append_escaped(text, c, quote); });
  text += quote;
}

// repr(value): as within a list, texts in quotes.
void append_repr(Rendering& rendering, std::string& text, const Value& value) {
  rendering.spend(1);
  if (value.is_none()) {
    text += "None";
  } else if (value.is_undefined()) {
    text += "Undefined";
  } else if (value.is_bool()) {
    text += value.is_true() ? "True" : "False";
  } else if (value.is_integer()) {
    text += std::to_string(*value.integer());
  } else if (value.is_real()) {
    text += real_text(*value.number());
  } else if (const std::string* string = value.text()) {
    if (value.is_markup()) text += "Markup(";
    append_quoted(rendering, text, *string);
    if (value.is_markup()) text += ')';
  } else if (const List* list = value.list()) {
    text += list->is_tuple ? '(' : '[';
    for (std::size_t i = 0; i < list->items.size(); ++i) {
      if (i > 0) text += ", ";
      append_repr(rendering, text, list->items[i]);
    }
    if (list->is_tuple && list->items.size() == 1) text += ',';
    text += list->is_tuple ? ')' : ']';
  } else if (const Dict* dict = value.dict()) {
    text += '{';
    for (std::size_t i = 0; i < dict->entries.size(); ++i) {
      if (i > 0) text += ", ";
      append_repr(rendering, text, dict->entries[i].first);
      text += ": ";
      append_repr(rendering, text, dict->entries[i].second);
    }
    text += '}';
  } else {  // Python would print an address, another one each time
    rendering.refuse(fmt::format("a {} has no text", value.type_name()));
  }
}

}  // namespace

void append_str(Rendering& rendering, std::string& text, const Value& value) {
  if (const std::string* string = value.text()) {
    rendering.spend_text(string->size());
    text += *string;
  } else if (!value.is_undefined()) {
    append_repr(rendering, text, value);
  }
}

std::string str_of(Rendering& rendering, const Value& value) {
  std::string text;
  append_str(rendering, text, value);
  return text;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::scientific).ptr;
  const std::string shortest(buffer.data(), end);
  const int exponent = std::atoi(shortest.c_str() + shortest.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return shortest;  // "1e-05", "1.5e+16"
  const auto fixed_end = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed).ptr;
  std::string fixed(buffer.data(), fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

}  // namespace tessera::internal::jinja
