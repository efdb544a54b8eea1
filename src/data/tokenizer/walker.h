// What the hand-written scanners of pattern.cc and mixed_case.cc share.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "data/tokenizer/characters.h"
#include "data/tokenizer/pattern.h"
#include "data/tokenizer/unicode.h"

namespace tessera::internal {

// Steps through a text, character by character, with the flags of each.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text), table_(CharTable::get()) {}

  bool at_end(std::size_t at) const { return at >= text_.size(); }
  unsigned flags(std::size_t at) const {
    const auto byte = static_cast<unsigned char>(text_[at]);
    return table_[byte < 0x80 ? byte : utf8_decode(text_.data() + at)];
  }
  std::size_t next(std::size_t at) const { return at + utf8_length(static_cast<unsigned char>(text_[at])); }
  // The end of the run of characters whose flags under `mask` are exactly `wanted`.
  std::size_t run(std::size_t at, unsigned mask, unsigned wanted) const {
    while (!at_end(at) && (flags(at) & mask) == wanted) at = next(at);
    return at;
  }
  // The end of the run of characters that have one of the flags.
  std::size_t run_of_any(std::size_t at, unsigned flags_wanted) const {
    while (!at_end(at) && (flags(at) & flags_wanted) != 0) at = next(at);
    return at;
  }

 private:
  std::string_view text_;
  const CharTable& table_;
};

inline constexpr unsigned kKinds = kLetter | kNumber | kSpace;  // these three and 'anything else' (0)

// The end of \s+(?!\S)|\s+ where white space begins: up to the end of the text, or all but the last character, which
// may belong to the next word, or that one alone.
inline std::size_t end_of_space(std::string_view text, const Walker& walker, std::size_t at) {
  const std::size_t second = walker.next(at);
  const std::size_t end = walker.run(second, kSpace, kSpace);
  return end == second || walker.at_end(end) ? end : utf8_previous(text, end);
}

inline bool is_line_end(char c) {
  return c == '\r' || c == '\n';
}

// The end of \s*[\r\n]+|\s+(?!\S)|\s+ where white space begins.
inline std::size_t end_of_lines_or_space(std::string_view text, const Walker& walker, std::size_t at) {
  std::size_t end = walker.run(at, kSpace, kSpace);
  while (end > at && !is_line_end(text[end - 1])) --end;
  return end > at ? end : end_of_space(text, walker, at);
}

// For expressions of which every character begins a match: these follow each other without gaps.
template <auto match_end>
void find_back_to_back(std::string_view text, std::vector<Match>& matches) {
  const Walker walker(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = match_end(text, walker, at);
    matches.push_back({at, end});
    at = end;
  }
}

// In either case; U+017F, the long s, is a small form of S.
inline std::size_t contraction_length(std::string_view text) {
  const auto lower = [&](std::size_t i) { return i < text.size() ? static_cast<char>(text[i] | 0x20) : '\0'; };
  if (text.substr(1).starts_with("\u017F")) return 3;
  const char first = lower(1), second = lower(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  return (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

}  // namespace tessera::internal
