#include "data/loading/mixed_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "data/loading/packing.h"
#include "support/message_of.h"

namespace tessera {
namespace {

using Rows = std::vector<std::int64_t>;

TEST(MixedRows, AnEpochEndsWhenTheFirstCorpusIsExhausted) {
  const MixedRows mix({1000, 50, 400}, {0.7, 0.1, 0.2}, 42);
  const Rows rows = mix.rows(0);
  ASSERT_EQ(std::ssize(rows), mix.size());
  EXPECT_EQ(mix.num_drawn(1), 50) << "about 500 draws take them all";
  EXPECT_LT(mix.num_drawn(0), 1000);
  EXPECT_EQ(mix.num_drawn(0) + 50 + mix.num_drawn(2), mix.size());
  EXPECT_TRUE(rows.back() >= 1000 && rows.back() < 1050) << "the last draw took the last row";
  EXPECT_EQ(std::set<std::int64_t>(rows.begin(), rows.end()).size(), rows.size()) << "no row twice";
  EXPECT_GE(*std::ranges::min_element(rows), 0);
  EXPECT_LT(*std::ranges::max_element(rows), 1450);
}

TEST(MixedRows, TheSharesAreThoseOfTheWeights) {
  const MixedRows mix({1'000'000, 1'000'000}, {7, 3}, 1);  // weights need not add up to 1
  const double share = static_cast<double>(mix.num_drawn(0)) / static_cast<double>(mix.size());
  EXPECT_NEAR(share, 0.7, 0.002);
  EXPECT_EQ(mix.num_drawn(0), 1'000'000);
}

TEST(MixedRows, TheOrderIsAFunctionOfSeedAndWeights) {
  const MixedRows mix({30, 30}, {0.5, 0.5}, 5);
  EXPECT_EQ(mix.rows(3), MixedRows({30, 30}, {0.5, 0.5}, 5).rows(3));
  EXPECT_EQ(mix.rows(3), MixedRows({30, 30}, {1, 1}, 5).rows(3));
  EXPECT_NE(mix.rows(3), mix.rows(4));
  EXPECT_NE(mix.rows(3), MixedRows({30, 30}, {0.5, 0.5}, 6).rows(3));
  EXPECT_NE(mix.rows(3), MixedRows({30, 30}, {0.6, 0.4}, 5).rows(3));
  // The order on every machine: a resumed run must find the same one.
  EXPECT_EQ(MixedRows({4, 3}, {0.5, 0.5}, 0).rows(0), (Rows{3, 5, 6, 0, 4}));
}

TEST(MixedRows, ACorpusShowsAllOfItsRowsBeforeOneComesAgain) {
  const MixedRows mix({100, 10}, {0.5, 0.5}, 3);
  std::vector<int> times(110);
  std::int64_t num_seen = 0, epoch = 0;
  while (num_seen < 100) {
    for (const std::int64_t row : mix.rows(epoch++)) {
      if (row < 100 && num_seen++ < 100) ++times[static_cast<std::size_t>(row)];
    }
  }
  EXPECT_EQ(std::vector<int>(times.begin(), times.begin() + 100), std::vector<int>(100, 1));
}

TEST(MixedRows, MayBePacked) {
  const MixedRows mix({20, 20}, {0.5, 0.5}, 3);
  const Rows rows = mix.rows(0);
  std::vector<std::int32_t> lengths;
  for (const std::int64_t row : rows) lengths.push_back(static_cast<std::int32_t>(row % 7) + 1);
  const PackedRows bins = pack_best_fit(lengths, 10, 1).of_rows(rows);
  Rows packed;
  for (const TokenPiece& piece : bins.pieces()) {
    packed.push_back(piece.row);
    EXPECT_EQ(piece.length, piece.row % 7 + 1);
  }
  EXPECT_TRUE(std::ranges::is_permutation(packed, rows));
}

TEST(MixedRows, RefusesWhatIsNoMix) {
  EXPECT_THROW(MixedRows({1, 2}, {1}, 0), Error);
  EXPECT_THROW(MixedRows({}, {}, 0), Error);
  EXPECT_THROW(MixedRows({1, 2}, {1, 0}, 0), UsageError);
  EXPECT_EQ(message_of([] { MixedRows({1, 0}, {1, 1}, 0); }), "corpus 2 of the mix has no rows");
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
