#include "data/templates/unicode_text.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "data/tokenizer/unicode.h"

namespace tessera::internal::jinja {
namespace {

#include "data/templates/case_tables.inc"

struct CaseTable {
  std::span<const std::int32_t> runs, several;
};
constexpr CaseTable kUpper = {kUpperRuns, kUpperSeveral}, kTitle = {kTitleRuns, kTitleSeveral},
                    kLower = {kLowerRuns, kLowerSeveral};

// Appends the character in another case.
void append_in_case(std::string& text, char32_t c, const CaseTable& table) {
  const auto code = static_cast<std::int32_t>(c);
  for (std::size_t i = 0; c >= 0x80 && i < table.several.size();) {
    const auto count = static_cast<std::size_t>(table.several[i + 1]);
    if (table.several[i] == code) {
      for (const std::int32_t part : table.several.subspan(i + 2, count))
        append_utf8(text, static_cast<char32_t>(part));
      return;
    }
    i += 2 + count;
  }
  for (std::size_t i = 0; i < table.runs.size() && table.runs[i] <= code; i += 4) {
    if (code <= table.runs[i + 1] && (code - table.runs[i]) % table.runs[i + 2] == 0) {
      return append_utf8(text, static_cast<char32_t>(code + table.runs[i + 3]));
    }
  }
  append_utf8(text, c);
}

// Whether a character stands there that has another case.
bool has_case(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  const char32_t c = utf8_decode(text.data() + at);
  std::string original, upper, lower;
  append_utf8(original, c);
  append_in_case(upper, c, kUpper);
  append_in_case(lower, c, kLower);
  return upper != original || lower != original;
}

bool is_stripped(std::string_view character, const std::string* set) {
  return set == nullptr ? is_space(utf8_decode(character.data())) : set->find(character) != std::string::npos;
}

bool ends_line(char32_t c) {
  return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_in(const std::vector<CodePointRange>& ranges, char32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &CodePointRange::first);
  return after != ranges.begin() && c <= std::prev(after)->second;
}

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  static const auto others = category_ranges("other").value_or(std::vector<CodePointRange>{});
  static const auto separators = category_ranges("separator").value_or(std::vector<CodePointRange>{});
  if (c < 0x80) return c >= ' ' && c < 0x7F;
  return !is_in(others, c) && !is_in(separators, c);
}

std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string_view strip_left(std::string_view text, const std::string* set) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(static_cast<unsigned char>(text[0]));
    if (!is_stripped(text.substr(0, length), set)) break;
    text.remove_prefix(length);
  }
  return text;
}

std::string_view strip_right(std::string_view text, const std::string* set) {
  while (!text.empty()) {
    const std::size_t last = utf8_previous(text, text.size());
    if (!is_stripped(text.substr(last), set)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::size_t most) {
  std::vector<std::string_view> parts;
  while (parts.size() < most) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
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

std::string upper_case(std::string_view text) {
  std::string upper;
  for_each_character(text, [&](char32_t c, std::size_t, std::size_t) { append_in_case(upper, c, kUpper); });
  return upper;
}

std::string lower_case_of(std::string_view text) {
  std::string lower;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) {
    // A capital sigma behind a letter and before none is the last of a word, which has a form of its own.
    constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
    const bool is_last = c == kSigma && at > 0 && has_case(text, utf8_previous(text, at)) && !has_case(text, at + 2);
    append_in_case(lower, is_last ? kFinalSigma : c, kLower);
  });
  return lower;
}

std::string capitalized(std::string_view text) {
  const std::size_t first = text.empty() ? 0 : utf8_length(static_cast<unsigned char>(text[0]));
  std::string changed;
  for_each_character(text.substr(0, first),
                     [&](char32_t c, std::size_t, std::size_t) { append_in_case(changed, c, kTitle); });
  return changed + lower_case_of(text.substr(first));
}

}  // namespace tessera::internal::jinja
