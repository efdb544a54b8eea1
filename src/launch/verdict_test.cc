#include "launch/verdict.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tessera {
namespace {

RankEnd ended(int rank, int status, std::int64_t time_ms, bool told = false) {
  RankEnd end{.rank = rank, .host = "n", .exit_status = status, .time_ms = time_ms};
  end.was_told_to_stop = told;
  return end;
}

TEST(Verdict, IsWellWhenAllRanksAre) {
  EXPECT_TRUE(judge({.ends = {ended(0, 0, 1), ended(1, 0, 2)}}).is_well());
}

TEST(Verdict, TakesTheFailedRanksStatus) {
  const Verdict verdict = judge({.ends = {ended(0, 143, 1, true), ended(1, 7, 2)}});
  EXPECT_EQ(verdict.status, 7);
  EXPECT_EQ(verdict.failure->rank, 1);
}

TEST(Verdict, TakesTheSignalsStatusUnlessRanksEndedWell) {
  EXPECT_EQ(judge({.ends = {ended(0, 0, 1), ended(1, 9, 2)}, .signal = SIGTERM}).status, 143);
  EXPECT_EQ(judge({.ends = {ended(0, 0, 1), ended(1, 0, 2)}, .signal = SIGTERM}).status, 0);
}

TEST(Verdict, NamesTroubleRatherThanRanksThatWereTakenDown) {
  const Verdict verdict = judge({.ends = {ended(0, 143, 1, true)}, .trouble = "mpirun died", .trouble_status = 9});
  EXPECT_EQ(verdict.trouble, "mpirun died");
  EXPECT_EQ(verdict.status, 9);
}

TEST(Verdict, MergesNodesToTheRankThatFailedByItself) {
  const Verdict taken_down = judge({.ends = {ended(0, 143, 1, true)}});
  const Verdict cause = judge({.ends = {ended(3, 139, 5)}});
  EXPECT_EQ(merge({Verdict{}, taken_down, cause}).failure->rank, 3);
  EXPECT_EQ(merge({Verdict{}, taken_down}).failure->rank, 0);
  EXPECT_TRUE(merge({Verdict{}, Verdict{}}).is_well());
  Verdict lost;
  lost.trouble = "node 1 is gone";
  lost.status = 42;
  EXPECT_EQ(merge({taken_down, lost}).status, 42);
  EXPECT_EQ(merge({cause, lost}).status, 139);
}

// The launchers of all nodes learn of a signal to one of them that came after a failure.
TEST(Verdict, KeepsThatASignalCameBesideAFailure) {
  CrewResult result{.ends = {ended(0, 7, 5)}};
  result.interrupted = true;
  const Verdict verdict = judge(result);
  EXPECT_TRUE(verdict.interrupted);
  EXPECT_EQ(verdict.status, 7);
  EXPECT_TRUE(merge({Verdict{}, verdict_from_json(to_json(verdict))}).interrupted);
  EXPECT_FALSE(merge({Verdict{}, Verdict{}}).interrupted);
}

TEST(Verdict, SurvivesJson) {
  Verdict verdict = judge({.ends = {ended(3, 139, 5)}});
  verdict.restart = true;
  EXPECT_EQ(to_json(verdict_from_json(to_json(verdict))), to_json(verdict));
  EXPECT_EQ(to_json(verdict_from_json(to_json(Verdict{}))), to_json(Verdict{}));
}

}  // namespace
}  // namespace tessera
