#include "listeners/step_text.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

RankRecord rank_with(int number, double data_ms, double forward_ms, double communication_ms) {
  RankRecord rank;
  rank.rank = number;
  rank.parts = {{"data wait", data_ms, 0}, {"forward", forward_ms, 0}, {"communication", communication_ms, 0}};
  return rank;
}

TEST(StepText, IsTheMeanOverRanks) {
  EXPECT_EQ(step_text({rank_with(0, 10, 30, 60), rank_with(1, 30, 50, 20)}),
            "100.0 ms = data wait 20.0 %, forward 40.0 %, communication 40.0 %");
  EXPECT_EQ(step_text({rank_with(0, 0, 1500, 0)}), "1.50 s = forward 100.0 %");
  EXPECT_EQ(step_text({}), "");
  EXPECT_EQ(step_text({RankRecord()}), "");
}

// All ranks take 100 ms, since they wait for each other: rank 2 has 60 ms of its own work where the median is 50.
TEST(StepText, NamesTheRankThatTheOthersWaitFor) {
  const std::vector<RankRecord> ranks = {rank_with(0, 10, 40, 50), rank_with(1, 10, 38, 52), rank_with(2, 21, 39, 40),
                                         rank_with(3, 9, 41, 50)};
  EXPECT_EQ(slow_rank_text(ranks), "rank 2 is 20 % slower than the median (data wait)");
}

TEST(StepText, RanksThatAreAlikeAreNotNamed) {
  EXPECT_FALSE(slow_rank_text({rank_with(0, 10, 40, 50), rank_with(1, 11, 41, 48)}).has_value());
  EXPECT_FALSE(slow_rank_text({rank_with(0, 10, 40, 50)}).has_value());
  EXPECT_FALSE(slow_rank_text({RankRecord(), RankRecord()}).has_value());
}

TEST(StepText, RanksMayHaveDifferentParts) {
  RankRecord few = rank_with(1, 10, 40, 50);
  few.parts.pop_back();
  EXPECT_EQ(step_text({rank_with(0, 10, 40, 50), few}),
            "75.0 ms = data wait 13.3 %, forward 53.3 %, communication 33.3 %");
  EXPECT_TRUE(slow_rank_text({rank_with(0, 10, 80, 10), few}).has_value());
}

}  // namespace
}  // namespace tessera
