#include "launch/exit_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "support/test_folder.h"

namespace tessera {
namespace {

RankEnd killed(int rank, int signal, std::int64_t time_ms) {
  return {.rank = rank, .host = "node3", .exit_status = 128 + signal, .signal = signal, .time_ms = time_ms};
}

RankEnd exited(int rank, int status, std::int64_t time_ms) {
  return {.rank = rank, .host = "node3", .exit_status = status, .time_ms = time_ms};
}

TEST(ExitReport, FindsNoFailureWhereAllEndedWell) {
  EXPECT_EQ(first_failure({exited(0, 0, 5), exited(1, 0, 6)}), nullptr);
}

TEST(ExitReport, NamesTheEarliestFailure) {
  const std::vector<RankEnd> ends = {exited(0, 1, 30), killed(1, SIGSEGV, 20), exited(2, 0, 10)};
  EXPECT_EQ(first_failure(ends)->rank, 1);
}

TEST(ExitReport, PassesOverRanksThatFailedBecauseOfAnother) {
  RankEnd follower = exited(0, 43, 10);
  follower.message = "rank 1 is gone";
  follower.says_consequence = true;
  EXPECT_EQ(first_failure({follower, killed(1, SIGKILL, 20)})->rank, 1);
}

TEST(ExitReport, PassesOverRanksThatWereToldToStop) {
  RankEnd stopped = killed(0, SIGTERM, 10);
  stopped.was_told_to_stop = true;
  EXPECT_EQ(first_failure({stopped, exited(1, 7, 20)})->rank, 1);
}

TEST(ExitReport, PassesOverRanksThatSayThatTheyWereStopped) {
  const TestFolder folder;
  const auto end_with = [&](int said, bool was_told) {
    RankEnd end = exited(0, 128 + SIGTERM, 10);
    end.was_told_to_stop = was_told;
    std::ofstream(folder / "words") << fmt::format(
        R"({{"rank":0,"host":"h","message":"why","exit_status":{},"time_ms":5,"is_consequence":false}})", said);
    add_last_words(end, folder / "words");
    return end;
  };
  EXPECT_TRUE(is_consequence(end_with(128 + SIGTERM, true)));
  EXPECT_FALSE(is_consequence(end_with(128 + SIGTERM, false))) << "nobody knows who stopped it";
  EXPECT_FALSE(is_consequence(end_with(1, true))) << "it had failed, and SIGTERM came while it ended";
}

TEST(ExitReport, StillNamesARankThatCrashedWhileItWasToldToStop) {
  // It was still writing its core when the others had already noticed.
  RankEnd follower = exited(0, 43, 10);
  follower.message = "connection to rank 1 lost";
  follower.says_consequence = true;
  RankEnd crashed = killed(1, SIGSEGV, 900);
  crashed.was_told_to_stop = true;
  EXPECT_EQ(first_failure({follower, crashed})->rank, 1);
}

TEST(ExitReport, NamesAConsequenceWhereNothingElseIsKnown) {
  RankEnd follower = exited(2, 43, 10);
  follower.message = "timed out";
  follower.says_consequence = true;
  EXPECT_EQ(first_failure({exited(0, 0, 1), follower})->rank, 2);
}

TEST(ExitReport, SaysSignalsByName) {
  EXPECT_EQ(describe(killed(2, SIGSEGV, 0)), "rank 2 on host node3 failed: killed by SIGSEGV");
  EXPECT_EQ(signal_name(SIGKILL), "SIGKILL");
  EXPECT_EQ(signal_name(40), "signal 40");
}

TEST(ExitReport, SaysTheRanksOwnWordAndTheMindersNote) {
  RankEnd end = exited(1, 43, 0);
  end.message = "all_reduce timed out";
  EXPECT_EQ(cause_of(end), "all_reduce timed out (exit status 43)");
  RankEnd starved = killed(1, SIGKILL, 0);
  starved.note = "the kernel's out-of-memory killer killed it";
  EXPECT_EQ(cause_of(starved), "killed by SIGKILL; the kernel's out-of-memory killer killed it");
}

TEST(ExitReport, SurvivesJson) {
  RankEnd end = killed(3, SIGBUS, 17);
  end.message = "m";
  end.note = "n";
  end.log_file = "l";
  EXPECT_EQ(Json(Json(end).get<RankEnd>()), Json(end));
}

TEST(ExitReport, ShowsOnlyTheLastLinesOfThisAttempt) {
  const TestFolder folder;
  const std::string path = folder / "log";
  std::ofstream(path) << "old\none\ntwo\nthree\n";
  EXPECT_EQ(last_lines(path, 4, 2), (std::vector<std::string>{"two", "three"}));
  EXPECT_EQ(last_lines(path, 4, 9), (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_TRUE(last_lines(path, 18, 9).empty());
  EXPECT_TRUE(last_lines(path + ".missing", 0, 9).empty());
}

const std::string kRule = std::string(74, '-') + "\n";

TEST(MpirunWords, AboutSignalsAndEndsExplainNothing) {
  EXPECT_EQ(explanation_in(""), "");
  EXPECT_EQ(explanation_in("mpirun: Forwarding signal 18 to job\n"), "");
  EXPECT_EQ(
      explanation_in(kRule + "mpirun noticed that process rank 0 with PID 0 on node a exited on signal 9 (Killed).\n" +
                     kRule),
      "");
}

TEST(MpirunWords, AboutBrokenRulesExplain) {
  const std::string rule = kRule +
                           "mpirun has exited due to process rank 1 with PID 0 on\nnode a exiting improperly.\n" +
                           std::string(74, '-');
  EXPECT_EQ(explanation_in(rule), rule);
  EXPECT_EQ(explanation_in("mpirun: Forwarding signal 18 to job\n" + rule + "\n"), rule);
}

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
  SupervisionResult result{.ends = {ended(0, 7, 5)}};
  result.interrupted = true;
  const Verdict verdict = judge(result);
  EXPECT_TRUE(verdict.interrupted);
  EXPECT_EQ(verdict.status, 7);
  EXPECT_TRUE(merge({Verdict{}, Json(verdict).get<Verdict>()}).interrupted);
  EXPECT_FALSE(merge({Verdict{}, Verdict{}}).interrupted);
}

TEST(Verdict, SurvivesJson) {
  Verdict verdict = judge({.ends = {ended(3, 139, 5)}});
  verdict.restart = true;
  EXPECT_EQ(Json(Json(verdict).get<Verdict>()), Json(verdict));
  EXPECT_EQ(Json(Json(Verdict{}).get<Verdict>()), Json(Verdict{}));
}

}  // namespace

}  // namespace tessera
