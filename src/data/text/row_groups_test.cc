#include "data/text/row_groups.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/error.h"
#include "support/message_of.h"

namespace tessera {
namespace {

using Rows = std::vector<std::int64_t>;

TEST(RowGroups, InOrderEndsAGroupWhereTheNextRowDoesNotFit) {
  const Rows lengths = {4, 3, 3, 9, 1, 1, 10};
  EXPECT_EQ(group_in_order(Rows{0, 1, 2, 3, 4, 5, 6}, lengths, 10),
            (std::vector<RowGroup>{{0, 1, 2}, {3, 4}, {5}, {6}}));
  EXPECT_EQ(group_in_order(Rows{6, 0, 0}, lengths, 10), (std::vector<RowGroup>{{6}, {0, 0}}));
  EXPECT_TRUE(group_in_order(Rows{}, lengths, 10).empty());
}

TEST(RowGroups, TightlyFillsTheGroups) {
  const Rows lengths = {4, 3, 3, 9, 1, 1, 10};
  EXPECT_EQ(group_tightly(Rows{0, 1, 2, 3, 4, 5, 6}, lengths, 10),
            (std::vector<RowGroup>{{0, 1, 2}, {3, 4}, {5}, {6}}));
  EXPECT_EQ(group_tightly(Rows{0, 1, 2, 3, 4, 5, 6}, lengths, 11), (std::vector<RowGroup>{{0, 1, 2, 5}, {3}, {4, 6}}));
}

TEST(RowGroups, KeepsEveryRowOnceWithinTheBudgetAndNeverUsesMoreGroupsThanInOrder) {
  std::mt19937 random(1);
  for (int repetition = 0; repetition < 50; ++repetition) {
    Rows lengths(200), rows(200);
    for (auto& length : lengths) length = 1 + static_cast<std::int64_t>(random() % 512);
    std::iota(rows.begin(), rows.end(), 0);
    std::shuffle(rows.begin(), rows.end(), random);
    const auto in_order = group_in_order(rows, lengths, 2048), tight = group_tightly(rows, lengths, 2048);
    EXPECT_LE(tight.size(), in_order.size());
    EXPECT_EQ(tight, group_tightly(rows, lengths, 2048));
    Rows flat;
    for (const auto& group : in_order) flat.insert(flat.end(), group.begin(), group.end());
    EXPECT_EQ(flat, rows);
    Rows all;
    for (const auto& group : tight) {
      std::int64_t sum = 0;
      for (const std::int64_t row : group) sum += lengths[static_cast<std::size_t>(row)];
      EXPECT_LE(sum, 2048);
      all.insert(all.end(), group.begin(), group.end());
    }
    std::sort(all.begin(), all.end());
    std::sort(flat.begin(), flat.end());
    EXPECT_EQ(all, flat);
  }
}

TEST(RowGroups, ARowLongerThanTheBudgetIsNamed) {
  const std::string expected = "row 1 has 30 tokens, more than the 10 of a whole batch";
  const Rows lengths = {5, 30};
  EXPECT_EQ(message_of([&] { group_in_order(Rows{0, 1}, lengths, 10); }).substr(0, expected.size()), expected);
  EXPECT_EQ(message_of([&] { group_tightly(Rows{0, 1}, lengths, 10); }).substr(0, expected.size()), expected);
  EXPECT_EQ(message_of([&] { group_tightly(Rows{1}, lengths, 10); }).substr(0, expected.size()), expected);
}

}  // namespace
}  // namespace tessera
