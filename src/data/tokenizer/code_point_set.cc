#include "data/tokenizer/code_point_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::internal {
namespace {

constexpr char32_t kLast = 0x10FFFF, kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

void sort_and_join(std::vector<CodePointRange>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<CodePointRange> joined;
  for (const CodePointRange& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().second + 1) {
      joined.back().second = std::max(joined.back().second, range.second);
    } else {
      joined.push_back(range);
    }
  }
  ranges = std::move(joined);
}

}  // namespace

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) : ranges_(std::move(ranges)) {
  sort_and_join(ranges_);
}

void CodePointSet::add(char32_t first, char32_t last) {
  ranges_.emplace_back(first, last);
  sort_and_join(ranges_);
}

void CodePointSet::add(const CodePointSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  sort_and_join(ranges_);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet with_surrogates = *this;
  with_surrogates.add(kFirstSurrogate, kLastSurrogate);
  CodePointSet result;
  char32_t next = 0;
  for (const auto& [first, last] : with_surrogates.ranges_) {
    if (first > next) result.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) result.ranges_.emplace_back(next, kLast);
  return result;
}

CodePointSet CodePointSet::intersection(const CodePointSet& other) const {
  CodePointSet outside = complement();
  outside.add(other.complement());
  return outside.complement();
}

bool CodePointSet::contains(char32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), CodePointRange{c, kLast});
  return after != ranges_.begin() && c <= std::prev(after)->second;
}

bool CodePointSet::has_case() const {
  const auto cases = lower_case_pairs();
  constexpr char32_t kIotaSubscript = 0x345;  // a mark, whose upper case is a letter
  return contains(kIotaSubscript) || std::any_of(cases.begin(), cases.end(), [&](const auto& pair) {
           return contains(pair.first) || contains(pair.second);
         });
}

std::string CodePointSet::as_class() const {
  // Uses the complement if it has fewer ranges.
  const CodePointSet rest = complement();
  const bool negate = rest.ranges_.size() < ranges_.size();
  std::string text = negate ? "[^" : "[";
  for (auto [first, last] : (negate ? rest : *this).ranges_) {
    // PCRE2 accepts no surrogate as the end of a range; inside a range it does not matter.
    if (first >= kFirstSurrogate && first <= kLastSurrogate) first = kLastSurrogate + 1;
    if (last >= kFirstSurrogate && last <= kLastSurrogate) last = kFirstSurrogate - 1;
    if (first > last) continue;
    text += first == last ? fmt::format("\\x{{{:x}}}", static_cast<std::uint32_t>(first))
                          : fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<std::uint32_t>(first),
                                        static_cast<std::uint32_t>(last));
  }
  if (text.size() == (negate ? 2U : 1U)) return negate ? "(?s:.)" : "(?!)";  // everything; nothing
  return text + "]";
}

}  // namespace tessera::internal
