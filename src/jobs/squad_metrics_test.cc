#include "jobs/squad_metrics.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/train_references.h"

namespace tessera {
namespace {

TEST(SquadMetrics, EqualTheOfficialScript) {
  SquadMetrics metrics;
  double exact_sum = 0, f1_sum = 0;
  for (const Json& row : train_reference("squad_metrics.json", "answers")) {
    SCOPED_TRACE(row.dump());
    const std::string prediction = row[0];
    const std::vector<std::string> gold_answers = row[1];
    EXPECT_EQ(normalize_answer(prediction), row[2].get<std::string>());
    const AnswerScore score = score_answer(prediction, gold_answers);
    EXPECT_EQ(score.exact_match, row[3].get<double>());
    EXPECT_EQ(score.f1, row[4].get<double>());
    metrics.add(prediction, gold_answers);
    exact_sum += row[3].get<double>();
    f1_sum += row[4].get<double>();
  }
  EXPECT_EQ(metrics.num_answers(), 510);
  EXPECT_EQ(metrics.exact_match(), exact_sum / 510);
  EXPECT_DOUBLE_EQ(metrics.f1(), f1_sum / 510);
  EXPECT_GT(metrics.exact_match(), 0.1);  // the reference holds both kinds
  EXPECT_LT(metrics.exact_match(), 0.9);
}

TEST(SquadMetrics, PartsOfRanksAreAdded) {
  SquadMetrics first, second;
  first.add("cat", {"The cat"});
  second.add("dog", {"cat"});
  second.add("a big dog", {"dog"});
  first.add(second);
  EXPECT_EQ(first.num_answers(), 3);
  EXPECT_DOUBLE_EQ(first.exact_match(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(first.f1(), (1 + 2.0 / 3) / 3);
  EXPECT_EQ(first.record().entries()[0].first, "exact_match");
}

TEST(SquadMetrics, NoAnswersAndBadText) {
  EXPECT_EQ(SquadMetrics().f1(), 0);
  EXPECT_THROW(score_answer("x", {}), Error);
  EXPECT_EQ(normalize_answer("the \xff cat"), "\xEF\xBF\xBD cat");
}

}  // namespace
}  // namespace tessera
