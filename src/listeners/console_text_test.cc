#include "listeners/console_text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/log_lines.h"
#include "support/train_references.h"
#include "train/meters.h"

namespace tessera {
namespace {

// The lines that users' scripts parse, word for word.
constexpr const char* kTrain =
    "{'loss': 4.895, 'grad_norm': 81.46920776367188, 'learning_rate': 1.08e-05, 'epoch': 4.0}";
constexpr const char* kEvaluation =
    "{'eval_loss': 9.937565803527832, 'eval_runtime': 3.7396, 'eval_samples_per_second': 26.741, "
    "'eval_steps_per_second': 26.741, 'epoch': 1.0}";
constexpr const char* kSummary =
    "{'train_runtime': 332.556, 'train_samples_per_second': 7.518, 'train_steps_per_second': 1.879, "
    "'train_loss': 3.9868627746582033, 'epoch': 5.0}";
constexpr const char* kMetrics = "Evaluation Metrics: {'exact_match': 0.0, 'f1': 0.0184947800077543}";

TEST(LogLine, TrainLine) {
  EXPECT_EQ(format_log_line(train_log(4.89504, 81.46920776367188, 1.08e-05, 4.0)), kTrain);
}

TEST(LogLine, EvaluationLine) {
  const LogRecord metrics{{"eval_loss", 9.937565803527832}};
  EXPECT_EQ(format_log_line(evaluation_log(metrics, 3.73957, 100, 100, 1.0)), kEvaluation);
}

TEST(LogLine, SummaryLine) {
  EXPECT_EQ(format_log_line(train_summary(332.556, 2500, 625, 3.9868627746582033, 5.0)), kSummary);
}

TEST(LogLine, EvaluationMetrics) {
  EXPECT_EQ(format_evaluation_metrics({{"exact_match", 0.0}, {"f1", 0.0184947800077543}}), kMetrics);
}

TEST(LogLine, EpochsArePrintedWithTwoPlacesAndFlosNot) {
  EXPECT_EQ(format_log_line({{"loss", 1.0}, {"total_flos", 1e12}, {"epoch", 2.928}}), "{'loss': 1.0, 'epoch': 2.93}");
}

TEST(LogLine, NoRateWhereNoTimeHasPassed) {
  EXPECT_EQ(format_log_line(train_summary(0, 10, 10, 1.5, 1.0)),
            "{'train_runtime': 0.0, 'train_loss': 1.5, 'epoch': 1.0}");
}

TEST(LogLine, NoNormWhereNothingIsClipped) {
  EXPECT_EQ(format_log_line(train_log(NAN, std::nullopt, 0.0, 0.5)),
            "{'loss': nan, 'learning_rate': 0.0, 'epoch': 0.5}");
}

TEST(LogLine, EveryLineIsReadBack) {
  for (const std::string line : {kTrain, kEvaluation, kSummary}) {
    const std::optional<LogLine> read = parse_log_line(line);
    ASSERT_TRUE(read) << line;
    EXPECT_EQ(read->label, "");
    EXPECT_EQ(format_log_line(read->record), line);
  }
  const std::optional<LogLine> metrics = parse_log_line(kMetrics);
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->label, "Evaluation Metrics");
  EXPECT_EQ(metrics->record.number("f1"), 0.0184947800077543);
}

TEST(LogLine, ReadsEveryKindOfValue) {
  const std::string line =
      "{'a': None, 'b': True, 'c': -3, 'd': -inf, 'e': 'it\\'s', \"f'\": 1e-05, 'g': nan, 'h': '\\x01\\n', 'i': 1e+16}";
  const std::optional<LogLine> read = parse_log_line(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read->record.find("a"), LogValue());
  EXPECT_EQ(*read->record.find("b"), LogValue(true));
  EXPECT_EQ(*read->record.find("c"), LogValue(std::int64_t{-3}));
  EXPECT_EQ(*read->record.find("d"), LogValue(-INFINITY));
  EXPECT_EQ(*read->record.find("e"), LogValue("it's"));
  EXPECT_EQ(*read->record.find("f'"), LogValue(1e-05));
  EXPECT_TRUE(std::isnan(*read->record.number("g")));
  EXPECT_EQ(*read->record.find("h"), LogValue("\x01\n"));
  EXPECT_EQ(read->record.number("i"), 1e16);
  EXPECT_EQ(read->record.find("z"), nullptr);
  EXPECT_EQ(read->record.number("e"), std::nullopt);
}

TEST(LogLine, WhatIsNoDictOfPlainValuesIsNotRead) {
  for (const char* line :
       {"", "{", "{'", "{'a'", "{'a':", "{'a': ", "{'a': 1", "{'a': 1,", "{'a': 1,}", "{'a': [1]}", "{'a': {'b': 1}}",
        "{'a': 1 2}", "{'a': x}", "{'a': '}", "{'a': '\\x0}", "{'a': 1e999}", "Question: {question}", "{\"json\": 1"}) {
    EXPECT_FALSE(parse_log_line(line)) << line;
  }
}

TEST(LogLine, LinesAreFoundAmongBarsAndOtherText) {
  const std::string output = std::string("loading\n  1%|          | 1/93 [00:01<02:00,  1.30s/it]\r") +
                             "  2%|2         | 2/93 [00:02<02:00,  1.30s/it]" + kTrain + "\n" + kEvaluation +
                             "\r\nwarn: {'not': a dict}\n" + kMetrics;
  const std::vector<LogLine> lines = parse_log(output);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].record.number("loss"), 4.895);
  EXPECT_EQ(lines[1].record.number("eval_loss"), 9.937565803527832);
  EXPECT_EQ(lines[2].label, "Evaluation Metrics");
}

TEST(ProgressText, BarsAreTqdms) {
  for (const Json& row : train_reference("text.json", "bars")) {
    Progress progress{row[0], row[1], row[2], std::nullopt, 0};
    if (!row[3].is_null()) progress.rate = row[3].get<double>();
    const int num_columns = row[4].is_null() ? 0 : row[4].get<int>();
    const std::string postfix = row[5].is_null() ? "" : row[5].get<std::string>();
    EXPECT_EQ(format_progress_bar(progress, num_columns, postfix), row[6].get<std::string>()) << row.dump();
  }
}

TEST(ProgressText, TheLineOfALogFile) {
  EXPECT_EQ(format_progress_line({.done = 93, .total = 93, .seconds = 122.4, .rate = 1 / 1.1}),
            "93/93 [02:02<00:00, 1.10s/it]");
  EXPECT_EQ(format_progress_line({.done = 10, .total = 30, .seconds = 4}), "10/30 [00:04<00:08, 2.50it/s]");
  EXPECT_EQ(format_progress_line({.done = 0, .total = 30}), "0/30 [00:00<?, ?it/s]");
}

TEST(ProgressText, AResumedRunsRateIsOfItsOwnSteps) {
  EXPECT_EQ(format_progress_line({.done = 60, .total = 80, .seconds = 5, .first = 50}),
            "60/80 [00:05<00:10, 2.00it/s]");
}

TEST(ProgressText, RatesAreSmoothedAsTqdmDoesIt) {
  SmoothedRate smoothed;
  EXPECT_EQ(smoothed.rate(), std::nullopt);
  for (const Json& row : train_reference("text.json", "smoothed")) {
    smoothed.add(row[0], row[1]);
    EXPECT_NEAR(smoothed.rate().value(), row[2].get<double>(), 1e-12);
  }
}

}  // namespace
}  // namespace tessera
