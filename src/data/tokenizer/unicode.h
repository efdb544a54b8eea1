// Properties of code points, as in the `tokenizers` package. Its parts use different versions of Unicode; the tables
// (unicode_tables.inc) hold its own answers, so that ours are equal. Constant after the first use, safe from any
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::internal {

using CodePointRange = std::pair<char32_t, char32_t>;  // first and last

enum CharFlags : std::uint16_t {
  kLetter = 1,      // \p{L}
  kNumber = 2,      // \p{N}
  kSpace = 4,       // \s
  kWord = 8,        // \w in Split's expressions
  kPlainWord = 16,  // \w in Whitespace and single_word: another engine
  kNumeric = 32,    // in Digits: another version of \p{N}
  kBloomStop = 64,  // what ends a piece in BLOOM's expression, white space included
  // In runs of letters that begin with upper and end with lower case, as in the expressions of tekken and GPT-4o.
  // Letters without case and marks fit into both.
  kUpperRun = 128,  // Lu, Lt, Lm, Lo, M
  kLowerRun = 256,  // Ll, Lm, Lo, M
};

// Flags of every code point, in a two-level table, so that the blocks in use stay in the cache.
class CharTable {
 public:
  static const CharTable& get();
  std::uint16_t operator[](char32_t c) const { return blocks_[block_of_[c >> 8]][c & 0xFF]; }

 private:
  CharTable();
  std::array<std::uint16_t, 0x1100> block_of_{};
  std::vector<std::array<std::uint16_t, 256>> blocks_;
};

// The white space at a text's ends, in bytes; the text is well-formed UTF-8.
std::size_t begin_of_trailing_space(std::string_view text);
std::size_t end_of_leading_space(std::string_view text);

// The code points of a property as regular expressions name it (L, Lu, Letter, Nd, ..., any case, underscores and
// spaces ignored), sorted; nothing if the name is not a general category.
std::optional<std::vector<CodePointRange>> category_ranges(std::string_view name);
// The code points that have all of the flags, sorted.
std::vector<CodePointRange> flag_ranges(unsigned flags);

// One or two characters; the character itself if it has no lower case.
void append_lower_case(std::u32string& text, char32_t c);

// Empty if the character stands for itself.
std::span<const std::uint32_t> decomposition(char32_t c, bool compatibility);
int combining_class(char32_t c);
std::optional<char32_t> composition(char32_t first, char32_t second);

}  // namespace tessera::internal
