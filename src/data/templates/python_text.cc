#include "data/templates/python_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

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

void append_text_repr(Rendering& rendering, std::string& text, const std::string& value) {
  rendering.spend_repeated(value.size(), 4);
  const bool has_single = value.find('\'') != std::string::npos, has_double = value.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  text += quote;
  for_each_character(value, [&](char32_t c, std::size_t, std::size_t) { append_escaped(text, c, quote); });
  text += quote;
}

void append_items(Rendering& rendering, std::string& text, const Values& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ", ";
    append_repr(rendering, text, items[i]);
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

void append_list_repr(Rendering& rendering, std::string& text, const Values& items) {
  text += '[';
  append_items(rendering, text, items);
  text += ']';
}

void append_dict_repr(Rendering& rendering, std::string& text, const std::vector<std::pair<Value, Value>>& entries) {
  text += '{';
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) text += ", ";
    append_repr(rendering, text, entries[i].first);
    text += ": ";
    append_repr(rendering, text, entries[i].second);
  }
  text += '}';
}

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
    append_text_repr(rendering, text, *string);
    if (value.is_markup()) text += ')';
  } else if (const List* list = value.list()) {
    append_list_repr(rendering, text, list->items);
  } else if (const Tuple* tuple = value.tuple()) {
    text += '(';
    append_items(rendering, text, tuple->items);
    text += tuple->items.size() == 1 ? ",)" : ")";
  } else if (const Dict* dict = value.dict()) {
    append_dict_repr(rendering, text, dict->entries);
  } else {
    const DepthGuard guard(rendering);  // a namespace may hold itself
    value.object()->append_repr(rendering, text);
  }
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(mark + 1)).c_str());
  if (exponent < -4 || exponent >= 16) return std::string(shortest);  // "1e-05", "1.5e+16"
  const auto fixed_end = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed).ptr;
  std::string fixed(buffer.data(), fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::string fixed_text(double value, char style, int precision) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const auto format = style == 'e'   ? std::chars_format::scientific
                      : style == 'f' ? std::chars_format::fixed
                                     : std::chars_format::general;
  std::string text(400 + static_cast<std::size_t>(precision), '\0');  // 309 digits before the point at most
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value, format, precision);
  text.resize(static_cast<std::size_t>(result.ptr - text.data()));
  return text;
}

}  // namespace tessera::internal::jinja
