// Exact match and F1 of answers, as the official SQuAD script computes them: the best over all gold answers.
//
// Answers are normalised first: lower case, no ASCII punctuation, no articles (a, an, the), one space between words.
// If one side normalises to nothing, both scores are 1 if the other does too, otherwise 0 (the script of SQuAD 2.0).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/log_record.h"

namespace tessera {

// Bytes that are not UTF-8 are read as U+FFFD.
std::string normalize_answer(std::string_view answer);

struct AnswerScore {
  double exact_match = 0;  // 0 or 1
  double f1 = 0;           // 0 to 1
};

// Each the best over the gold answers, of which there is at least one (Error otherwise).
AnswerScore score_answer(std::string_view prediction, const std::vector<std::string>& gold_answers);

// Means over answers; those of several ranks are added together first.
class SquadMetrics {
 public:
  void add(std::string_view prediction, const std::vector<std::string>& gold_answers);
  void add(const SquadMetrics& other);

  std::int64_t num_answers() const { return num_answers_; }
  double exact_match() const { return mean(exact_sum_); }  // 0 if there is no answer
  double f1() const { return mean(f1_sum_); }
  LogRecord record() const { return {{"exact_match", exact_match()}, {"f1", f1()}}; }

 private:
  double mean(double sum) const { return num_answers_ == 0 ? 0 : sum / static_cast<double>(num_answers_); }

  std::int64_t num_answers_ = 0;
  double exact_sum_ = 0, f1_sum_ = 0;
};

}  // namespace tessera
