// Regular expressions and other ways to find parts of a text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::internal {

struct Match {
  std::size_t begin, end;  // bytes
};

// Finds all matches from left to right, none overlapping. Constant, safe from any thread; texts are well-formed UTF-8.
class Pattern {
 public:
  virtual ~Pattern() = default;
  virtual void find_all(std::string_view text, std::vector<Match>& matches) const = 0;
};

// GPT-2's expression (ByteLevel also splits by it) and BLOOM's, as in tokenizer.json.
extern const char* const kGpt2Expression;
extern const char* const kBloomExpression;

// Oniguruma's syntax and meaning, as in the original. The two expressions above are scanned by our own code; others
// need PCRE2, and are refused if Tessera was built without it. `where` is what messages call the place.
std::unique_ptr<Pattern> make_pattern(const std::string& expression, const std::string& where);
// Uses PCRE2 for any expression, the two above included; nothing if PCRE2 is not built in. For tests.
std::unique_ptr<Pattern> make_pcre_pattern(const std::string& expression, const std::string& where);
bool has_pcre();

std::unique_ptr<Pattern> make_literal_pattern(std::string literal, const std::string& where);
// Each character that has one of the flags (unicode.h), as its own match.
std::unique_ptr<Pattern> make_character_pattern(unsigned flags);
// \w+|[^\w\s]+ with Whitespace's meaning.
std::unique_ptr<Pattern> make_word_pattern();

}  // namespace tessera::internal
