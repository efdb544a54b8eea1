#include "data/templates/text_parts.h"

#include <algorithm>
#include <limits>

#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

bool has_character(std::string_view set, std::string_view character) {
  return set.find(character) != std::string_view::npos;  // UTF-8: found only where a character begins
}

bool ends_line(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

std::size_t count_of(std::string_view text, std::string_view part, std::size_t most) {
  std::size_t count = 0;
  for (std::size_t at = 0; count < most && (at = text.find(part, at)) != std::string_view::npos; at += part.size()) {
    ++count;
  }
  return count;
}

// Between all characters, and at both ends.
std::string interspersed(std::string_view text, std::string_view with, std::size_t count) {
  std::string all;
  for_each_character(text, [&](char32_t, std::size_t begin, std::size_t end) {
    if (count > 0) {
      all += with;
      --count;
    }
    all += text.substr(begin, end - begin);
  });
  if (count > 0) all += with;
  return all;
}

}  // namespace

std::string_view strip_set_left(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(static_cast<unsigned char>(text[0]));
    if (!has_character(set, text.substr(0, length))) break;
    text.remove_prefix(length);
  }
  return text;
}
std::string_view strip_set_right(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::size_t last = utf8_previous(text, text.size());
    if (!has_character(set, text.substr(last))) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string replaced(Rendering& rendering, std::string_view text, std::string_view old, std::string_view with,
                     std::int64_t count) {
  rendering.spend_text(text.size());
  const std::size_t most = count < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(count);
  if (old.empty()) {
    rendering.spend_repeated(with.size() + 1, std::min(most, text.size() + 1));
    return interspersed(text, with, most);
  }
  const std::size_t found = count_of(text, old, most);
  rendering.spend_repeated(with.size(), found);
  std::string all;
  std::size_t at = 0;
  for (std::size_t i = 0; i < found; ++i) {
    const std::size_t next = text.find(old, at);
    all += text.substr(at, next - at);
    all += with;
    at = next + old.size();
  }
  all += text.substr(at);
  return all;
}

std::string padded_text(Rendering& rendering, std::string_view text, std::int64_t width, std::string_view fill,
                        bool is_at_begin, bool is_at_both) {
  rendering.spend_text(text.size());
  const auto length = static_cast<std::int64_t>(num_characters(text));
  if (width <= length) return std::string(text);
  const auto missing = static_cast<std::size_t>(width - length);
  rendering.spend_repeated(fill.size(), missing);
  // Of an odd number, Python puts the larger half first where the width is odd.
  const std::size_t half = missing / 2 + (missing % 2 & static_cast<std::size_t>(width) % 2);
  const std::size_t before = is_at_both ? half : is_at_begin ? missing : 0;
  std::string all;
  for (std::size_t i = 0; i < before; ++i) all += fill;
  all += text;
  for (std::size_t i = before; i < missing; ++i) all += fill;
  return all;
}

std::string escape_html(Rendering& rendering, std::string_view text) {
  rendering.spend_repeated(text.size(), 5);
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '"':
        escaped += "&#34;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

Value escaped_texts(Rendering& rendering, const Value& value) {
  if (value.text() != nullptr) {
    return value.is_markup() ? value : Value::markup(escape_html(rendering, *value.text()));
  }
  const auto escaped_all = [&](Values items) {
    for (Value& item : items) item = item.text() == nullptr ? item : escaped_texts(rendering, item);
    return items;
  };
  if (value.list() != nullptr) return rendering.list(escaped_all(value.list()->items));
  if (value.tuple() != nullptr) return rendering.tuple(escaped_all(value.tuple()->items));
  if (value.dict() == nullptr) return value;
  auto entries = value.dict()->entries;
  for (auto& [key, each] : entries) each = each.text() == nullptr ? each : escaped_texts(rendering, each);
  return rendering.dict(std::move(entries));
}

std::vector<std::string_view> lines_of(std::string_view text, bool keeps_ends) {
  std::vector<std::string_view> lines;
  std::size_t line = 0;
  for_each_character(text, [&](char32_t c, std::size_t begin, std::size_t end) {
    if (!ends_line(c) || begin < line) return;
    if (c == '\r' && end < text.size() && text[end] == '\n') ++end;
    lines.push_back(text.substr(line, (keeps_ends ? end : begin) - line));
    line = end;
  });
  if (line < text.size()) lines.push_back(text.substr(line));
  return lines;
}

}  // namespace tessera::internal::jinja
