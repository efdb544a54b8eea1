#include "listeners/progress_text.h"

#include <gtest/gtest.h>

#include "support/train_references.h"

namespace tessera {
namespace {

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
