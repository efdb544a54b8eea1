// How well an answer matches the gold answers.
#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/text.h"
#include "data/tokenizer/characters.h"
#include "data/tokenizer/unicode.h"
#include "jobs/answers.h"

namespace tessera {

namespace {

using internal::CharTable;

constexpr char32_t kCapitalSigma = 0x3A3, kFinalSigma = 0x3C2;

bool is_letter(char32_t c) {
  return (CharTable::get()[c] & internal::kLetter) != 0;
}

// Python's \w: letters, numbers and the underscore, but no combining marks.
bool is_word(char32_t c) {
  return c == '_' || (CharTable::get()[c] & (internal::kLetter | internal::kNumber)) != 0;
}

// What Python's split() splits at: Unicode's white space and four control characters.
bool is_space(char32_t c) {
  return (c >= 0x1C && c <= 0x1F) || (CharTable::get()[c] & internal::kSpace) != 0;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

// A capital sigma at a word's end has a lower case of its own, as in Python.
std::u32string lower_case(const std::u32string& text) {
  std::u32string lower;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool follows_letter = i > 0 && is_letter(text[i - 1]);
    const bool precedes_letter = i + 1 < text.size() && is_letter(text[i + 1]);
    if (text[i] == kCapitalSigma && follows_letter && !precedes_letter) {
      lower += kFinalSigma;
    } else {
      internal::append_lower_case(lower, text[i]);
    }
  }
  return lower;
}

bool is_article(std::u32string_view word) {
  return word == U"a" || word == U"an" || word == U"the";
}

// An article is a whole run of word characters: '日本the' holds none, 'the½' neither, 'the”' one.
std::u32string without_articles(const std::u32string& text) {
  std::u32string rest;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::u32string_view word = std::u32string_view(text).substr(begin, end - begin);
    rest += is_article(word) ? std::u32string_view(U" ") : word;
    if (end < text.size()) rest += text[end++];
    begin = end;
  }
  return rest;
}

std::vector<std::string> words_of(std::string_view answer) {
  std::u32string text = lower_case(internal::to_utf32(internal::replace_ill_formed(answer)));
  std::erase_if(text, is_ascii_punctuation);
  std::vector<std::string> words;
  bool in_word = false;
  for (const char32_t c : without_articles(text)) {
    if (is_space(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    internal::append_utf8(words.back(), c);
  }
  return words;
}

AnswerScore score(std::vector<std::string> predicted, std::vector<std::string> gold) {
  AnswerScore result;
  result.exact_match = predicted == gold ? 1 : 0;
  if (predicted.empty() || gold.empty()) {
    result.f1 = result.exact_match;
    return result;
  }
  std::ranges::sort(predicted);
  std::ranges::sort(gold);
  std::vector<std::string> same;
  std::ranges::set_intersection(predicted, gold, std::back_inserter(same));
  if (same.empty()) return result;
  const double precision = static_cast<double>(same.size()) / static_cast<double>(predicted.size());
  const double recall = static_cast<double>(same.size()) / static_cast<double>(gold.size());
  result.f1 = (2 * precision * recall) / (precision + recall);
  return result;
}

}  // namespace

std::string normalize_answer(std::string_view answer) {
  return join(words_of(answer), " ");
}

AnswerScore score_answer(std::string_view prediction, const std::vector<std::string>& gold_answers) {
  if (gold_answers.empty()) throw Error("an answer cannot be scored: there is no gold answer to compare it with");
  const std::vector<std::string> predicted = words_of(prediction);
  AnswerScore best;
  for (const std::string& gold : gold_answers) {
    const AnswerScore one = score(predicted, words_of(gold));
    best.exact_match = std::max(best.exact_match, one.exact_match);
    best.f1 = std::max(best.f1, one.f1);
  }
  return best;
}

}  // namespace tessera
