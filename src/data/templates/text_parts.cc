#include "data/templates/text_parts.h"

#include <algorithm>

#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

bool ends_line(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::string_view strip_set_left(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(static_cast<unsigned char>(text[0]));
    if (set.find(text.substr(0, length)) == std::string_view::npos) break;
    text.remove_prefix(length);
  }
  return text;
}

std::string_view strip_set_right(std::string_view text, std::string_view set) {
  while (!text.empty()) {
    const std::size_t last = utf8_previous(text, text.size());
    if (set.find(text.substr(last)) == std::string_view::npos) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with, std::size_t most) {
  std::string all;
  for (; most > 0; --most) {
    const std::size_t next = text.find(old);
    if (next == std::string_view::npos) break;
    all += text.substr(0, next);
    all += with;
    text.remove_prefix(next + old.size());
  }
  all += text;
  return all;
}

std::size_t count_of(std::string_view text, std::string_view part, std::size_t most) {
  std::size_t count = 0;
  for (std::size_t at = 0; count < most && (at = text.find(part, at)) != std::string_view::npos; at += part.size()) {
    ++count;
  }
  return count;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::size_t most,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (parts.size() < most) {
    const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator.size());
    parts.push_back(from_right ? after : before);
    text = from_right ? before : after;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> words_of(std::string_view text, std::size_t most) {
  std::vector<std::string_view> words;
  for (text = strip_left(text); !text.empty(); text = strip_left(text)) {
    std::size_t end = words.size() == most ? text.size() : 0;  // the rest, with the white space at its end
    while (end < text.size() && !is_space(utf8_decode(text.data() + end))) {
      end += utf8_length(static_cast<unsigned char>(text[end]));
    }
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t line = 0;
  for_each_character(text, [&](char32_t c, std::size_t begin, std::size_t end) {
    if (!ends_line(c) || begin < line) return;
    if (c == '\r' && end < text.size() && text[end] == '\n') ++end;
    lines.push_back(text.substr(line, begin - line));
    line = end;
  });
  if (line < text.size()) lines.push_back(text.substr(line));
  return lines;
}

}  // namespace tessera::internal::jinja
