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

bool changes(char32_t c, const CaseTable& table) {
  std::string original, changed;
  append_utf8(original, c);
  append_in_case(changed, c, table);
  return original != changed;
}

// The lower case of the character at `at`; a sigma at the end of a word has a form of its own.
void append_lower(std::string& text, std::string_view whole, std::size_t at, char32_t c) {
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  if (c == kSigma && at > 0) {
    const std::size_t end = at + 2;
    const bool follows = has_case(utf8_decode(whole.data() + utf8_previous(whole, at)));
    const bool goes_on = end < whole.size() && has_case(utf8_decode(whole.data() + end));
    if (follows && !goes_on) return append_utf8(text, kFinalSigma);
  }
  append_in_case(text, c, kLower);
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

bool has_case(char32_t c) {
  return changes(c, kUpper) || changes(c, kLower) || changes(c, kTitle);
}

std::string_view strip_left(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_space(utf8_decode(text.data() + at))) {
    at += utf8_length(static_cast<unsigned char>(text[at]));
  }
  return text.substr(at);
}

std::string_view strip_right(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t last = utf8_previous(text, end);
    if (!is_space(utf8_decode(text.data() + last))) break;
    end = last;
  }
  return text.substr(0, end);
}

std::size_t num_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t byte_of_character(std::string_view text, std::size_t character) {
  std::size_t at = 0;
  for (; character > 0 && at < text.size(); --character) at += utf8_length(static_cast<unsigned char>(text[at]));
  return at;
}

std::string upper_case(std::string_view text) {
  std::string upper;
  for_each_character(text, [&](char32_t c, std::size_t, std::size_t) { append_in_case(upper, c, kUpper); });
  return upper;
}

std::string lower_case_of(std::string_view text) {
  std::string lower;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) { append_lower(lower, text, at, c); });
  return lower;
}

std::string capitalized(std::string_view text) {
  return title_case(text, [](char32_t) { return false; });
}

std::string title_case(std::string_view text, bool (*ends_word)(char32_t)) {
  std::string changed;
  bool is_inside = false;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) {
    if (is_inside) {
      append_lower(changed, text, at, c);
    } else {
      append_in_case(changed, c, kTitle);
    }
    is_inside = !ends_word(c);
  });
  return changed;
}

}  // namespace tessera::internal::jinja
