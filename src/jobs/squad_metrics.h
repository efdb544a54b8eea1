// Exact match and F1 of answers, as the official SQuAD script computes them: the best over all gold answers.
//
// Answers are normalised first: lower case, no ASCII punctuation, no articles (a, an, the), one space between words.
// If one side normalises to nothing, both scores are 1 if the other does too, otherwise 0 (the script of SQuAD 2.0).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Bytes that are not UTF-8 are read as U+FFFD.
std::string normalize_answer(std::string_view answer);

struct AnswerScore {
  double exact_match = 0;  // 0 or 1
  double f1 = 0;           // 0 to 1
};

// Each the best over the gold answers, of which there is at least one (Error otherwise).
AnswerScore score_answer(std::string_view prediction, const std::vector<std::string>& gold_answers);

}  // namespace tessera
