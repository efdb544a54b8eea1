// Regular expressions and other ways to find parts of a text, and Replace, which is both a normalizer and a decoder.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_reader.h"

namespace tessera::internal {

struct Match {
  std::size_t begin, end;  // bytes
};

// Appends all matches from left to right, none overlapping. Safe from any thread; texts are well-formed UTF-8.
using Pattern = std::function<void(std::string_view text, std::vector<Match>& matches)>;

// As in tokenizer.json. ByteLevel also splits by GPT-2's; Qwen 2's is Llama 3's with single digits. Mistral's tekken
// and GPT-4o (which Llama 4 and Phi-4-mini follow) split words where lower case turns into upper case.
extern const char* const kGpt2Expression;
extern const char* const kBloomExpression;
extern const char* const kLlama3Expression;
extern const char* const kQwen2Expression;
extern const char* const kTekkenExpression;
extern const char* const kGpt4oExpression;

// Oniguruma's syntax and meaning. The expressions above are scanned by our own code, many times as fast; others need
// the library, and are refused if Tessera was built without it. `where` is what messages call the place.
Pattern make_pattern(const std::string& expression, const std::string& where);
// By Oniguruma, whatever the expression; nothing if Tessera was built without it.
Pattern make_expression(const std::string& expression, const std::string& where);

// Each character that has one of the flags (unicode.h), as its own match.
Pattern make_character_pattern(unsigned flags);
// \w+|[^\w\s]+ with Whitespace's meaning.
Pattern make_word_pattern();

// {"String": "..."} or {"Regex": "..."}, of Split and Replace.
Pattern read_pattern(const JsonReader& component);
// A text with all matches replaced.
std::function<std::string(std::string_view)> read_replacement(const JsonReader& component);

}  // namespace tessera::internal
