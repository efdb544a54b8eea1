// Regular expressions and other ways to find parts of a text, and Replace, which is both a normalizer and a decoder.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/component.h"

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

// As in tokenizer.json. ByteLevel also splits by GPT-2's; Qwen 2's is Llama 3's with single digits.
extern const char* const kGpt2Expression;
extern const char* const kBloomExpression;
extern const char* const kLlama3Expression;
extern const char* const kQwen2Expression;

// Oniguruma's syntax and meaning. The expressions above are scanned by our own code, many times as fast; others need
// the library, and are refused if Tessera was built without it. `where` is what messages call the place.
std::unique_ptr<Pattern> make_pattern(const std::string& expression, const std::string& where);
// By Oniguruma, whatever the expression; nothing if Tessera was built without it.
std::unique_ptr<Pattern> make_expression(const std::string& expression, const std::string& where);

// Each character that has one of the flags (unicode.h), as its own match.
std::unique_ptr<Pattern> make_character_pattern(unsigned flags);
// \w+|[^\w\s]+ with Whitespace's meaning.
std::unique_ptr<Pattern> make_word_pattern();

// {"String": "..."} or {"Regex": "..."}, of Split and Replace.
std::unique_ptr<Pattern> read_pattern(const Component& component);

class Replacement {
 public:
  Replacement(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string apply(std::string_view text) const;

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

Replacement read_replacement(const Component& component);

}  // namespace tessera::internal
