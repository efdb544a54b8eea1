#include "comm/meeting/failure_report.h"

#include <gtest/gtest.h>

#include "support/contains.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

FailureReport report_of(const std::vector<std::string>& hosts) {
  return FailureReport({.holder = "rank 0 on " + hosts[0], .holder_host = hosts[0], .hosts = hosts});
}

FlightEntry all_reduce(int num_ranks) {
  FlightEntry entry;
  entry.group = "world";
  for (int rank = 0; rank < num_ranks; ++rank) entry.ranks.push_back(rank);
  entry.operation = "all_reduce";
  entry.unit = "block.3";
  return entry;
}

// A rank that is in the collective, and one that has not started any.
std::string dump_in(int num_ranks, FlightEntry* entry = nullptr) {
  FlightRecorder recorder;
  recorder.begin(all_reduce(num_ranks));
  if (entry != nullptr) *entry = recorder.entries().front();
  return recorder.dump();
}

TEST(FailureReport, NamesTheRankThatNeverEnteredACollectiveWithItsHost) {
  FailureReport report = report_of({"node1", "node1", "node2"});
  FlightEntry stuck;
  const std::string inside = dump_in(3, &stuck);
  report.hear_alarm({0, 43, "a collective took longer than 2s (--comm_timeout)", stuck});
  EXPECT_TRUE(report.is_open());
  report.hear_flight(0, inside);
  report.hear_flight(1, inside);
  EXPECT_FALSE(report.conclude(Clock::now()));
  report.hear_flight(2, "[]");
  const auto finding = report.conclude(Clock::now());
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 2 on node2 never entered a collective: a collective took longer"));
  EXPECT_EQ(finding->speaker, 0);
  EXPECT_FALSE(report.conclude(Clock::now() + 1h));  // once
}

TEST(FailureReport, WhatMostEnteredIsTheMeasureWhoeverRaisesTheAlarm) {
  FlightRecorder alone;
  FlightEntry leave = all_reduce(3);
  leave.operation = "leave_world";
  alone.begin(leave);
  FlightEntry most;
  const std::string inside = dump_in(3, &most);
  for (const int raiser : {0, 1}) {
    FailureReport report = report_of({"node1", "node1", "node2"});
    report.hear_alarm({raiser, 43, "it took too long", raiser == 1 ? alone.entries().front() : most});
    report.hear_flight(0, inside);
    report.hear_flight(1, alone.dump());
    report.hear_flight(2, inside);
    const auto finding = report.conclude(Clock::now());
    ASSERT_TRUE(finding);
    EXPECT_TRUE(
        contains(finding->message, "rank 1 on node1 entered another collective: it took too long\n#1 all_reduce"))
        << finding->message;
    EXPECT_TRUE(contains(finding->message, "entered another one instead:\n  rank 1: #1 leave_world"))
        << finding->message;
    EXPECT_TRUE(contains(finding->message, "entered it:\n  ranks 0, 2: waiting in it")) << finding->message;
  }
}

TEST(FailureReport, ARankThatIsHeldUpInAnEarlierCollectiveIsNotToBlame) {
  FailureReport report = report_of({"node1", "node1", "node2", "node2"});
  FlightRecorder ahead, behind;
  ahead.finish(ahead.begin(all_reduce(4)));  // its own part of #1 is done
  ahead.begin(all_reduce(4));
  behind.begin(all_reduce(4));  // still waits in #1 for rank 3
  report.hear_alarm({0, 43, "it took too long", ahead.entries().back()});
  for (const int rank : {0, 1}) report.hear_flight(rank, ahead.dump());
  report.hear_flight(2, behind.dump());
  const auto finding = report.conclude(Clock::now() + 3s);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 3 on node2 did not answer: it took too long\n#1 all_reduce"))
      << finding->message;
  EXPECT_TRUE(contains(finding->message, "rank 2: waiting in it")) << finding->message;
}

TEST(FailureReport, ARankThatIsHeldUpInAnotherGroupIsNotToBlame) {
  FailureReport report = report_of({"node1", "node1", "node2", "node2"});
  FlightEntry in_node = all_reduce(4);
  in_node.group = "node";
  in_node.ranks = {2, 3};
  FlightRecorder world, node;
  world.begin(all_reduce(4));
  node.begin(in_node);
  report.hear_alarm({0, 43, "it took too long", world.entries().back()});
  for (const int rank : {0, 1}) report.hear_flight(rank, world.dump());
  report.hear_flight(2, node.dump());
  report.hear_flight(3, "[]");
  const auto finding = report.conclude(Clock::now());
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 3 on node2 never entered a collective: it took too long"))
      << finding->message;
  EXPECT_FALSE(contains(finding->message, "ranks 2-3 on")) << finding->message;
}

TEST(FailureReport, NamesTheRankThatDoesNotAnswer) {
  FailureReport report = report_of({"node1", "node2"});
  FlightEntry stuck;
  const std::string inside = dump_in(2, &stuck);
  report.hear_alarm({1, 43, "a collective took longer than 2s (--comm_timeout)", stuck});
  report.hear_flight(1, inside);
  EXPECT_FALSE(report.conclude(Clock::now()));
  const auto finding = report.conclude(Clock::now() + 3s);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 0 on node1 did not answer: a collective took longer"));
  EXPECT_EQ(finding->speaker, 1);
}

TEST(FailureReport, BlamesTheDeadAndNotWhoeverSawItFirst) {
  FailureReport report = report_of({"node1", "node1", "node2", "node2"});
  FlightEntry stuck;
  const std::string inside = dump_in(4, &stuck);
  stuck.error = "MPI_Test: connection reset";
  report.hear_alarm({1, 43, stuck.error, stuck});
  for (int rank = 0; rank < 3; ++rank) report.hear_flight(rank, inside);
  report.note_loss(3, Loss::kEnded);
  const auto finding = report.conclude(Clock::now() + 1s);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->message, "rank 3 on node2 is gone: its process ended without reporting an error");
  EXPECT_TRUE(finding->is_loss);
}

TEST(FailureReport, BlamesTheDeadAlsoIfARankFailsOfItInItsOwnWords) {
  FailureReport report = report_of({"node1", "node2"});
  report.hear_alarm({0, 1, "NCCL error: remote process exited", std::nullopt});
  EXPECT_FALSE(report.conclude(Clock::now()));
  report.note_loss(1, Loss::kEnded);
  const auto finding = report.conclude(Clock::now() + 1s);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->message, "rank 1 on node2 is gone: its process ended without reporting an error");
}

TEST(FailureReport, TellsAHostThatDoesNotAnswerFromAProcessThatEnded) {
  FailureReport report = report_of({"node1", "node1", "node2", "node2"});
  report.note_loss(2, Loss::kUnreachable);  // rank 3 is silent too, and its connection not yet given up
  EXPECT_FALSE(report.conclude(Clock::now()));
  const auto finding = report.conclude(Clock::now() + 1s);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 0 on node1 and ranks 2-3 on node2 have lost contact: no answer for 4s"));
}

TEST(FailureReport, ARankThatLeftInPeaceIsNotLost) {
  FailureReport report = report_of({"node1", "node2"});
  report.note_leave(1);
  report.note_loss(1, Loss::kEnded);
  EXPECT_FALSE(report.is_open());
}

TEST(FailureReport, ARankThatRaisedTheAlarmAndGaveUpIsNotBlamed) {
  FailureReport report = report_of({"node1", "node2"});
  FlightEntry stuck;
  const std::string inside = dump_in(2, &stuck);
  report.hear_alarm({1, 43, "a collective took longer than 2s (--comm_timeout)", stuck});
  report.hear_flight(1, inside);
  report.note_loss(1, Loss::kEnded);
  report.hear_flight(0, "[]");
  const auto finding = report.conclude(Clock::now());
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 0 on node1 never entered a collective"));
}

TEST(FailureReport, AHolderThatWasStoppedBlamesItself) {
  FailureReport report = report_of({"node1", "node2"});
  report.note_own_pause(30s);
  report.note_loss(1, Loss::kEnded);
  const auto finding = report.conclude(Clock::now() + 1s);
  ASSERT_TRUE(finding);
  EXPECT_TRUE(contains(finding->message, "rank 0 on node1 was stopped for 30s"));
}

TEST(FailureReport, TheFirstOfTwoAlarmsCounts) {
  FailureReport report = report_of({"node1", "node2"});
  report.hear_alarm({1, 7, "the disk is full", {}});
  report.hear_alarm({0, 9, "me too", {}});
  const auto finding = report.conclude(Clock::now() + 1s);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->message, "rank 1 on node2: the disk is full");
  EXPECT_EQ(finding->status, 7);
  EXPECT_TRUE(finding->is_plain);
}

TEST(FailureReport, NoAlarmEndsARunWithSuccess) {
  for (const int status : {0, -1, 256, 1 << 20}) {
    EXPECT_EQ(Alarm::from_text(Alarm{0, status, "x", {}}.to_text()).status, 1);
    EXPECT_EQ(Finding::from_text(Finding{.message = "x", .status = status}.to_text()).status, 1);
  }
}

}  // namespace

}  // namespace tessera
