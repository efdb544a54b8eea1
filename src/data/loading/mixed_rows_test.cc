#include "data/loading/mixed_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "support/message_of.h"

namespace tessera {
namespace {

using Rows = std::vector<std::int64_t>;

TEST(MixedRows, EndWhenTheFirstCorpusIsExhausted) {
  const Rows rows = mixed_rows({1000, 50, 400}, {0.7, 0.1, 0.2}, 42);
  EXPECT_EQ(std::ranges::count_if(rows, [](auto row) { return row >= 1000 && row < 1050; }), 50)
      << "about 500 draws take them all";
  EXPECT_LT(rows.size(), 1450U);
  EXPECT_TRUE(rows.back() >= 1000 && rows.back() < 1050) << "the last draw took the last row";
  EXPECT_EQ(std::set<std::int64_t>(rows.begin(), rows.end()).size(), rows.size()) << "no row twice";
  EXPECT_GE(*std::ranges::min_element(rows), 0);
  EXPECT_LT(*std::ranges::max_element(rows), 1450);
}

TEST(MixedRows, HaveTheSharesOfTheWeights) {
  const Rows rows = mixed_rows({1'000'000, 1'000'000}, {7, 3}, 1);  // weights need not add up to 1
  const auto num_first = std::ranges::count_if(rows, [](auto row) { return row < 1'000'000; });
  EXPECT_EQ(num_first, 1'000'000);
  EXPECT_NEAR(static_cast<double>(num_first) / static_cast<double>(rows.size()), 0.7, 0.002);
}

TEST(MixedRows, AreAFunctionOfSizesWeightsAndSeed) {
  const Rows rows = mixed_rows({30, 30}, {0.5, 0.5}, 5);
  EXPECT_EQ(rows, mixed_rows({30, 30}, {0.5, 0.5}, 5));
  EXPECT_EQ(rows, mixed_rows({30, 30}, {1, 1}, 5));
  EXPECT_NE(rows, mixed_rows({30, 30}, {0.5, 0.5}, 6));
  EXPECT_NE(rows, mixed_rows({30, 30}, {0.6, 0.4}, 5));
  // The order on every machine: a resumed run must find the same one.
  EXPECT_EQ(mixed_rows({4, 3}, {0.5, 0.5}, 0), (Rows{3, 5, 6, 0, 4}));
}

TEST(MixedRows, RefuseWhatIsNoMix) {
  EXPECT_THROW(mixed_rows({1, 2}, {1}, 0), Error);
  EXPECT_THROW(mixed_rows({}, {}, 0), Error);
  EXPECT_THROW(mixed_rows({1, 2}, {1, 0}, 0), UsageError);
  EXPECT_EQ(message_of([] { mixed_rows({1, 0}, {1, 1}, 0); }), "corpus 2 of the mix has no rows");
}

TEST(ParseMix, ReadsFilesAndWeights) {
  const auto files = parse_mix("a.jsonl=0.7, data/b=c.csv=3");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].file, "a.jsonl");
  EXPECT_EQ(files[0].weight, 0.7);
  EXPECT_EQ(files[1].file, "data/b=c.csv");
  EXPECT_EQ(files[1].weight, 3);
  for (const char* wrong : {"", "a.jsonl", "=1", "a=", "a=x", "a=-1", "a=0", "a=1,", "a=inf"}) {
    EXPECT_THROW(parse_mix(wrong), UsageError) << wrong;
  }
  EXPECT_EQ(message_of([] { parse_mix("a=1,b"); }),
            "'b' is not part of a mix; expected FILE=WEIGHT with a positive weight, as in a.jsonl=0.7,b.jsonl=0.3");
}

}  // namespace
}  // namespace tessera
