#include "parallel/unit_layout.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

using enum ParameterGroup;

TEST(FlatLayout, PutsWhatDecaysFirstAndAlignsEveryParameter) {
  const FlatLayout layout({{"bias", {5}, kPlain}, {"weight", {3, 7}, kDecaying}, {"scale", {}, kFrozen}}, 2);
  ASSERT_EQ(layout.slots().size(), 3u);
  EXPECT_EQ(layout.slots()[0].name, "weight");
  EXPECT_EQ(layout.slots()[0].offset, 0);
  EXPECT_EQ(layout.slots()[0].numel, 21);
  EXPECT_EQ(layout.slots()[1].name, "bias");
  EXPECT_EQ(layout.slots()[1].offset, 32);
  EXPECT_EQ(layout.slots()[2].offset, 64);
  EXPECT_EQ(layout.slots()[2].numel, 1);
  EXPECT_EQ(layout.entry_of_slot(), (std::vector<std::size_t>{1, 0, 2}));
  EXPECT_EQ(layout.range_of(kDecaying).end, 21);
  EXPECT_EQ(layout.range_of(kPlain).begin, 32);
  EXPECT_EQ(layout.range_of(kPlain).end, 37);
  EXPECT_EQ(layout.range_of(kFrozen).numel(), 1);
}

TEST(FlatLayout, ShardsAreWholeBlocksThatCoverTheUnit) {
  for (const int ranks : {1, 2, 3, 4, 7}) {
    for (const std::int64_t numel :
         {std::int64_t{1}, kBlockNumel - 1, kBlockNumel, kBlockNumel + 1, std::int64_t{50'000}}) {
      const FlatLayout layout({{"w", {numel}, kDecaying}}, ranks);
      EXPECT_EQ(layout.shard_numel() % kBlockNumel, 0);
      EXPECT_GE(layout.padded_numel(), numel);
      EXPECT_LT(layout.padded_numel() - numel, ranks * kBlockNumel);
      EXPECT_EQ(layout.shard(ranks - 1).end, layout.padded_numel());
    }
  }
}

TEST(FlatLayout, TheNumberOfRanksMovesNoParameter) {
  const std::vector<FlatLayout::Entry> entries{{"a", {100, 100}, kDecaying}, {"b", {100}, kPlain}};
  const FlatLayout one(entries, 1), five(entries, 5);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(one.slots()[i].offset, five.slots()[i].offset);
  EXPECT_EQ(one.num_blocks(), five.num_blocks());
}

TEST(FlatLayout, AUnitOfOneParameterOrNone) {
  EXPECT_EQ(FlatLayout({{"w", {1}, kDecaying}}, 4).shard_numel(), kBlockNumel);
  const FlatLayout none({}, 4);
  EXPECT_EQ(none.padded_numel(), 0);
  EXPECT_TRUE(none.range_of(kDecaying).empty());
}

}  // namespace
}  // namespace tessera
