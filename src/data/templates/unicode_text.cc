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

// Appends the character in another case.
void append_in_case(std::string& text, char32_t c, const CaseTable& table) {
  const auto code = static_cast<std::int32_t>(c);
  for (std::size_t i = 0; i < table.several.size(); i += 2 + static_cast<std::size_t>(table.several[i + 1])) {
    if (table.several[i] != code) continue;
    for (const std::int32_t part : table.several.subspan(i + 2, static_cast<std::size_t>(table.several[i + 1]))) {
      append_utf8(text, static_cast<char32_t>(part));
    }
    return;
  }
  for (std::size_t i = 0; i < table.runs.size() && table.runs[i] <= code; i += 4) {
    if (code <= table.runs[i + 1] && (code - table.runs[i]) % table.runs[i + 2] == 0) {
      return append_utf8(text, static_cast<char32_t>(code + table.runs[i + 3]));
    }
  }
  append_utf8(text, c);
}

char ascii_upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

void append_upper(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += ascii_upper(static_cast<char>(c));
  } else {
    append_in_case(text, c, {kUpperRuns, kUpperSeveral});
  }
}
void append_title(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += ascii_upper(static_cast<char>(c));
  } else {
    append_in_case(text, c, {kTitleRuns, kTitleSeveral});
  }
}

bool has_case(char32_t c) {
  return is_upper(c) || is_lower(c) || is_title(c);
}

// The lower case of the character at `at`; a sigma at the end of a word has a form of its own.
void append_lower(std::string& text, std::string_view whole, std::size_t at, char32_t c) {
  if (c < 0x80) {
    text += ascii_lower(static_cast<char>(c));
    return;
  }
  constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2;
  if (c == kSigma && at > 0) {
    const std::size_t end = at + 2;
    const bool follows = has_case(utf8_decode(whole.data() + utf8_previous(whole, at)));
    const bool goes_on = end < whole.size() && has_case(utf8_decode(whole.data() + end));
    if (follows && !goes_on) return append_utf8(text, kFinalSigma);
  }
  append_in_case(text, c, {kLowerRuns, kLowerSeveral});
}

bool changes(char32_t c, void (*append)(std::string&, char32_t)) {
  std::string original, changed;
  append_utf8(original, c);
  append(changed, c);
  return original != changed;
}

unsigned flags_of(char32_t c) {
  return CharTable::get()[c];
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
bool is_word(char32_t c) {
  return c == '_' || is_letter(c) || is_numeric(c);
}
bool is_letter(char32_t c) {
  return (flags_of(c) & kLetter) != 0;
}
bool is_numeric(char32_t c) {
  return (flags_of(c) & kNumeric) != 0;
}
bool is_digit(char32_t c) {
  static const auto digits = category_ranges("nd").value_or(std::vector<CodePointRange>{});
  return c < 0x80 ? c >= '0' && c <= '9' : is_in(digits, c);
}
bool is_title(char32_t c) {
  static const auto titles = category_ranges("lt").value_or(std::vector<CodePointRange>{});
  return c >= 0x80 && is_in(titles, c);
}
bool is_upper(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z';
  const unsigned flags = flags_of(c);
  return (flags & kUpperRun) != 0 && (flags & kLowerRun) == 0 && !is_title(c);
}
bool is_lower(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z';
  const unsigned flags = flags_of(c);
  return ((flags & kLowerRun) != 0 && (flags & kUpperRun) == 0) || (!is_upper(c) && changes(c, append_upper));
}
bool is_printable(char32_t c) {
  static const auto others = category_ranges("other").value_or(std::vector<CodePointRange>{});
  static const auto separators = category_ranges("separator").value_or(std::vector<CodePointRange>{});
  if (c < 0x80) return c >= ' ' && c < 0x7F;
  return !is_in(others, c) && !is_in(separators, c);
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
  for_each_character(text, [&](char32_t c, std::size_t, std::size_t) { append_upper(upper, c); });
  return upper;
}
std::string lower_case_of(std::string_view text) {
  std::string lower;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) { append_lower(lower, text, at, c); });
  return lower;
}
std::string capitalized(std::string_view text) {
  std::string changed;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) {
    if (at == 0) {
      append_title(changed, c);
    } else {
      append_lower(changed, text, at, c);
    }
  });
  return changed;
}
std::string title_case(std::string_view text) {
  std::string changed;
  bool is_inside = false;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) {
    if (is_inside) {
      append_lower(changed, text, at, c);
    } else {
      append_title(changed, c);
    }
    is_inside = has_case(c);
  });
  return changed;
}
std::string swapped_case(std::string_view text) {
  std::string changed;
  for_each_character(text, [&](char32_t c, std::size_t at, std::size_t) {
    if (is_upper(c)) {
      append_lower(changed, text, at, c);
    } else {
      append_upper(changed, c);
    }
  });
  return changed;
}

}  // namespace tessera::internal::jinja
