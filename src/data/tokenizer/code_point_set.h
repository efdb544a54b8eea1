// Sets of characters, as expressions describe them.
#pragma once

#include <string>
#include <vector>

#include "data/tokenizer/unicode.h"

namespace tessera::internal {

class CodePointSet {
 public:
  CodePointSet() = default;
  explicit CodePointSet(std::vector<CodePointRange> ranges);

  void add(char32_t first, char32_t last);
  void add(const CodePointSet& other);
  CodePointSet complement() const;  // within all characters, which exclude surrogates
  CodePointSet intersection(const CodePointSet& other) const;
  bool contains(char32_t c) const;
  bool has_case() const;  // some character in it has an upper or lower case form

  const std::vector<CodePointRange>& ranges() const { return ranges_; }
  std::string as_class() const;  // [\x{41}-\x{5a}], in PCRE2's syntax

 private:
  std::vector<CodePointRange> ranges_;  // sorted, not touching each other
};

}  // namespace tessera::internal
