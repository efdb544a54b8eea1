#include "data/tokenizer/unicode.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "data/tokenizer/characters.h"

namespace tessera::internal {
namespace {

#include "data/tokenizer/unicode_tables.inc"

constexpr char32_t kNumCodePoints = 0x110000;

template <typename Function>
void for_each_range(std::span<const std::uint32_t> ranges, const Function& function) {
  for (std::size_t i = 0; i < ranges.size(); i += 2) {
    for (std::uint32_t c = ranges[i]; c <= ranges[i + 1]; ++c) function(c);
  }
}

// Long names of the categories that expressions use, beside the one- and two-letter ones.
const std::map<std::string, std::string, std::less<>>& long_names() {
  static const std::map<std::string, std::string, std::less<>> names = {{"letter", "l"},
                                                                        {"uppercaseletter", "lu"},
                                                                        {"lowercaseletter", "ll"},
                                                                        {"titlecaseletter", "lt"},
                                                                        {"modifierletter", "lm"},
                                                                        {"otherletter", "lo"},
                                                                        {"mark", "m"},
                                                                        {"nonspacingmark", "mn"},
                                                                        {"spacingmark", "mc"},
                                                                        {"enclosingmark", "me"},
                                                                        {"number", "n"},
                                                                        {"decimalnumber", "nd"},
                                                                        {"letternumber", "nl"},
                                                                        {"othernumber", "no"},
                                                                        {"punctuation", "p"},
                                                                        {"symbol", "s"},
                                                                        {"mathsymbol", "sm"},
                                                                        {"currencysymbol", "sc"},
                                                                        {"modifiersymbol", "sk"},
                                                                        {"othersymbol", "so"},
                                                                        {"separator", "z"},
                                                                        {"spaceseparator", "zs"},
                                                                        {"other", "c"},
                                                                        {"control", "cc"},
                                                                        {"connectorpunctuation", "pc"}};
  return names;
}

std::vector<std::uint16_t> all_flags() {
  std::vector<std::uint16_t> flags(kNumCodePoints, 0);
  const std::size_t num_runs = std::size(kCategoryRuns) / 2;
  for (std::size_t run = 0; run < num_runs; ++run) {
    const std::string_view name = kCategoryNames[kCategoryRuns[2 * run + 1]];
    std::uint16_t value = 0;
    if (name[0] == 'L') value = kLetter | kWord | kPlainWord;
    if (name[0] == 'M' || name == "Pc") value = kWord | kPlainWord;
    if (name[0] == 'N') value = kNumber | kNumeric;
    if (name == "Nd") value |= kWord | kPlainWord;
    const bool has_case = name == "Lu" || name == "Lt" || name == "Ll";
    if (name == "Lu" || name == "Lt") value |= kUpperRun;
    if (name == "Ll") value |= kLowerRun;
    if (!has_case && (name[0] == 'L' || name[0] == 'M')) value |= kUpperRun | kLowerRun;
    const std::uint32_t end = run + 1 < num_runs ? kCategoryRuns[2 * run + 2] : kNumCodePoints;
    std::fill(flags.begin() + kCategoryRuns[2 * run], flags.begin() + end, value);
  }
  for_each_range(kSpaceRanges, [&](std::uint32_t c) { flags[c] |= kSpace | kBloomStop; });
  for_each_range(kWordExtraRanges, [&](std::uint32_t c) { flags[c] |= kWord | kPlainWord; });
  for_each_range(kPlainWordAddedRanges, [&](std::uint32_t c) { flags[c] |= kPlainWord; });
  for_each_range(kPlainWordRemovedRanges,
                 [&](std::uint32_t c) { flags[c] &= static_cast<std::uint16_t>(~kPlainWord); });
  for_each_range(kNumericExtraRanges, [&](std::uint32_t c) { flags[c] |= kNumeric; });
  for (const char32_t c : std::u32string_view(U"(|).,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c")) {
    flags[c] |= kBloomStop;
  }
  return flags;
}

// Case, underscores, hyphens and spaces are ignored in a property's name.
std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

void extend(std::vector<CodePointRange>& ranges, char32_t first, char32_t last) {
  if (!ranges.empty() && ranges.back().second + 1 == first) {
    ranges.back().second = last;
  } else {
    ranges.emplace_back(first, last);
  }
}

// Maps a character to the start of its entry in a flat table of (character, count, characters...).
std::unordered_map<char32_t, std::uint32_t> index_of(std::span<const std::uint32_t> table) {
  std::unordered_map<char32_t, std::uint32_t> index;
  for (std::uint32_t at = 0; at < table.size(); at += 2 + table[at + 1]) index.emplace(table[at], at);
  return index;
}

std::span<const std::uint32_t> entry(std::span<const std::uint32_t> table,
                                     const std::unordered_map<char32_t, std::uint32_t>& index, char32_t c) {
  const auto found = index.find(c);
  if (found == index.end()) return {};
  return table.subspan(found->second + 2, table[found->second + 1]);
}

}  // namespace

const CharTable& CharTable::get() {
  static const CharTable table;
  return table;
}

CharTable::CharTable() {
  const std::vector<std::uint16_t> flags = all_flags();
  std::map<std::array<std::uint16_t, 256>, std::uint16_t> known;
  for (std::size_t block = 0; block < block_of_.size(); ++block) {
    std::array<std::uint16_t, 256> content;
    std::copy_n(flags.begin() + static_cast<std::ptrdiff_t>(block * 256), 256, content.begin());
    const auto [place, is_new] = known.emplace(content, static_cast<std::uint16_t>(blocks_.size()));
    if (is_new) blocks_.push_back(content);
    block_of_[block] = place->second;
  }
}

std::size_t begin_of_trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t last = utf8_previous(text, end);
    if ((CharTable::get()[utf8_decode(text.data() + last)] & kSpace) == 0) break;
    end = last;
  }
  return end;
}
std::size_t end_of_leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && (CharTable::get()[utf8_decode(text.data() + at)] & kSpace) != 0) {
    at += utf8_length(static_cast<unsigned char>(text[at]));
  }
  return at;
}

std::optional<std::vector<CodePointRange>> category_ranges(std::string_view name) {
  std::string wanted = plain_name(name);
  if (const auto found = long_names().find(wanted); found != long_names().end()) wanted = found->second;
  if (wanted == "any") return {{{0, kNumCodePoints - 1}}};
  std::vector<CodePointRange> ranges;
  const std::size_t num_runs = std::size(kCategoryRuns) / 2;
  for (std::size_t run = 0; run < num_runs; ++run) {
    const std::string category = plain_name(kCategoryNames[kCategoryRuns[2 * run + 1]]);
    if (category != wanted && category.substr(0, 1) != wanted) continue;
    extend(ranges, kCategoryRuns[2 * run], (run + 1 < num_runs ? kCategoryRuns[2 * run + 2] : kNumCodePoints) - 1);
  }
  if (ranges.empty()) return std::nullopt;
  return ranges;
}

std::vector<CodePointRange> flag_ranges(unsigned flags) {
  std::vector<CodePointRange> ranges;
  const CharTable& table = CharTable::get();
  for (char32_t c = 0; c < kNumCodePoints; ++c) {
    if ((table[c] & flags) == flags) extend(ranges, c, c);
  }
  return ranges;
}

void append_lower_case(std::u32string& text, char32_t c) {
  static const auto lower = [] {
    std::unordered_map<char32_t, std::pair<char32_t, char32_t>> map;
    for (std::size_t i = 0; i < std::size(kLowerCase); i += 3) {
      map.emplace(kLowerCase[i], std::pair<char32_t, char32_t>(kLowerCase[i + 1], kLowerCase[i + 2]));
    }
    return map;
  }();
  const auto found = lower.find(c);
  text += found == lower.end() ? c : found->second.first;
  if (found != lower.end() && found->second.second != 0) text += found->second.second;
}

std::span<const std::uint32_t> decomposition(char32_t c, bool compatibility) {
  static const auto canonical = index_of(kCanonicalDecompositions);
  static const auto compatible = index_of(kCompatibilityDecompositions);
  if (compatibility) {
    if (const auto parts = entry(kCompatibilityDecompositions, compatible, c); !parts.empty()) return parts;
  }
  return entry(kCanonicalDecompositions, canonical, c);
}

int combining_class(char32_t c) {
  constexpr std::size_t kNumRuns = std::size(kCombiningRuns) / 3;  // each: first, last, class
  std::size_t run = 0;
  for (std::size_t end = kNumRuns; run < end;) {
    const std::size_t middle = (run + end) / 2;
    if (kCombiningRuns[3 * middle + 1] < c) {
      run = middle + 1;
    } else {
      end = middle;
    }
  }
  if (run == kNumRuns || c < kCombiningRuns[3 * run]) return 0;
  return static_cast<int>(kCombiningRuns[3 * run + 2]);
}

std::optional<char32_t> composition(char32_t first, char32_t second) {
  static const auto pairs = [] {
    std::unordered_map<std::uint64_t, char32_t> map;
    for (std::size_t i = 0; i < std::size(kCompositions); i += 3) {
      map.emplace(static_cast<std::uint64_t>(kCompositions[i]) << 32 | kCompositions[i + 1], kCompositions[i + 2]);
    }
    return map;
  }();
  const auto found = pairs.find(static_cast<std::uint64_t>(first) << 32 | second);
  if (found == pairs.end()) return std::nullopt;
  return found->second;
}

}  // namespace tessera::internal
