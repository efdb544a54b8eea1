#include <gtest/gtest.h>

#include "core/error.h"
#include "jobs/answers.h"
#include "support/train_references.h"

namespace tessera {
namespace {

TEST(SquadMetrics, EqualTheOfficialScript) {
  std::vector<std::string> answers;
  std::vector<QaPrompt> prompts;
  double exact_sum = 0, f1_sum = 0;
  for (const Json& row : train_reference("squad_metrics.json", "answers")) {
    SCOPED_TRACE(row.dump());
    const std::string prediction = row[0];
    const std::vector<std::string> gold_answers = row[1];
    EXPECT_EQ(normalize_answer(prediction), row[2].get<std::string>());
    const AnswerScore score = score_answer(prediction, gold_answers);
    EXPECT_EQ(score.exact_match, row[3].get<double>());
    EXPECT_EQ(score.f1, row[4].get<double>());
    answers.push_back(prediction);
    prompts.push_back({"", {}, gold_answers});
    exact_sum += row[3].get<double>();
    f1_sum += row[4].get<double>();
  }
  ASSERT_EQ(answers.size(), 510);
  const LogRecord metrics = answer_metrics(answers, prompts);
  const double exact_match = metrics.number("exact_match").value();
  EXPECT_EQ(exact_match, exact_sum / 510);
  EXPECT_DOUBLE_EQ(metrics.number("f1").value(), f1_sum / 510);
  EXPECT_GT(exact_match, 0.1);  // the reference holds both kinds
  EXPECT_LT(exact_match, 0.9);
}

TEST(SquadMetrics, NoAnswersAndBadText) {
  EXPECT_THROW(answer_metrics({}, {}), Error);
  EXPECT_THROW(score_answer("x", {}), Error);
  EXPECT_EQ(normalize_answer("the \xff cat"), "\xEF\xBF\xBD cat");
}

}  // namespace
}  // namespace tessera
