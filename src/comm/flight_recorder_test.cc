#include "comm/flight_recorder.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/contains.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

FlightEntry entry(const std::string& operation, std::int64_t bytes, const std::string& unit = "") {
  FlightEntry e;
  e.group = "world";
  e.ranks = {0, 1, 2};
  e.operation = operation;
  e.unit = unit;
  e.bytes = bytes;
  e.detail = "Float sum";
  return e;
}

TEST(FlightRecorder, NumbersCollectivesByGroupAndMessagesNotAtAll) {
  FlightRecorder recorder;
  recorder.begin(entry("all_reduce", 4));
  FlightEntry other = entry("all_gather", 8);
  other.group = "node 0";
  recorder.begin(other);
  recorder.begin(entry("send", 4));
  recorder.begin(entry("barrier", 0));
  const auto entries = recorder.entries();
  EXPECT_EQ(entries[0].sequence, 1u);
  EXPECT_EQ(entries[1].sequence, 1u);
  EXPECT_EQ(entries[2].sequence, 0u);
  EXPECT_EQ(entries[3].sequence, 2u);
}

TEST(FlightRecorder, KeepsTheLastOnesAndNeverForgetsOneUnderWay) {
  FlightRecorder recorder(4);
  const auto stuck = recorder.begin(entry("all_reduce", 4, "stuck"));
  for (int i = 0; i < 100; ++i) recorder.finish(recorder.begin(entry("barrier", 0)));
  const auto entries = recorder.entries();
  EXPECT_LE(entries.size(), 4u);
  EXPECT_EQ(entries.front().id, stuck);
  EXPECT_EQ(entries.back().sequence, 101u);
}

TEST(FlightRecorder, ShrinksAgainAfterManyAtOnce) {
  FlightRecorder recorder(4);
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 100; ++i) ids.push_back(recorder.begin(entry("barrier", 0)));
  for (std::uint64_t id : ids) recorder.finish(id);
  EXPECT_TRUE(recorder.is_idle());
  recorder.begin(entry("barrier", 0));
  EXPECT_LE(recorder.entries().size(), 4u);
}

TEST(FlightRecorder, ForgetsWhatWasRefusedWithItsNumber) {
  FlightRecorder recorder;
  recorder.finish(recorder.begin(entry("barrier", 0)));
  recorder.cancel(recorder.begin(entry("broadcast", 4)));
  recorder.begin(entry("all_reduce", 4));
  EXPECT_EQ(recorder.entries().size(), 2u);
  EXPECT_EQ(recorder.entries().back().sequence, 2u);
}

TEST(FlightRecorder, FindsWhatIsOverdueAndWhatFailed) {
  FlightRecorder recorder;
  recorder.finish(recorder.begin(entry("barrier", 0)));
  const auto now = std::chrono::milliseconds(0), long_after = std::chrono::milliseconds(60'000);
  EXPECT_FALSE(recorder.overdue(now));
  const auto id = recorder.begin(entry("all_reduce", 4, "x"));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(recorder.overdue(now));
  EXPECT_FALSE(recorder.overdue(long_after));
  FlightEntry impatient = entry("MPI_Init", 0);
  impatient.limit = std::chrono::milliseconds(1);
  const auto second = recorder.begin(impatient);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(recorder.overdue(long_after)->operation, "MPI_Init");
  recorder.finish(second);
  EXPECT_FALSE(recorder.first_failed());
  recorder.finish(id, "the sizes differ");
  EXPECT_EQ(recorder.first_failed()->unit, "x");
}

TEST(FlightRecorder, PollsWorkThatCannotCallBack) {
  FlightRecorder recorder;
  bool done = false;
  recorder.finish_when(recorder.begin(entry("all_reduce", 4)), [&] { return done; });
  recorder.poll();
  EXPECT_FALSE(recorder.entries().front().done);
  done = true;
  recorder.poll();
  EXPECT_TRUE(recorder.entries().front().done);
}

TEST(FlightRecorder, SurvivesTheWayThroughTheStore) {
  FlightRecorder recorder;
  recorder.finish(recorder.begin(entry("all_reduce", 4, "a\"\n\xff")), "why");
  recorder.begin(entry("barrier", 0));
  const auto back = FlightRecorder::parse_dump(recorder.dump());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].error, "why");
  EXPECT_TRUE(back[0].done);
  EXPECT_EQ(back[0].ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(back[1].done);
}

TEST(Diagnose, SaysWhoNeverEnteredWhoEnteredAnotherAndWhoIsSilent) {
  FlightRecorder rank0, rank1;
  rank0.finish(rank0.begin(entry("barrier", 0)));
  rank0.begin(entry("all_reduce", 4096, "block.3"));
  rank1.finish(rank1.begin(entry("barrier", 0)));
  const FlightEntry stuck = rank0.entries().back();
  std::string text = diagnose(stuck, {{0, rank0.entries()}, {1, rank1.entries()}});
  EXPECT_TRUE(contains(text, "#2 all_reduce of 'block.3' (4096 bytes, Float sum) on group world (3 ranks)")) << text;
  EXPECT_TRUE(contains(text, "rank 1: last finished #1 barrier")) << text;
  EXPECT_TRUE(contains(text, "rank 2: did not answer")) << text;
  EXPECT_TRUE(contains(text, "entered it:\n  rank 0: waiting in it")) << text;

  FlightRecorder far(2);
  for (int i = 0; i < 9; ++i) far.finish(far.begin(entry("barrier", 0)));
  text = diagnose(stuck, {{0, rank0.entries()}, {1, far.entries()}, {2, far.entries()}});
  EXPECT_TRUE(contains(text, "ranks 1-2: finished it; last finished #9 barrier")) << text;

  rank1.begin(entry("all_reduce", 8192, "block.3"));
  text = diagnose(stuck, {{0, rank0.entries()}, {1, rank1.entries()}});
  EXPECT_TRUE(contains(text, "entered another one instead:\n  rank 1: #2 all_reduce of 'block.3' (8192 bytes")) << text;
}

TEST(FlightRecorder, AddsUpCallsBytesAndSecondsByOperationAndUnit) {
  FlightRecorder recorder(2);  // totals outlive the ring
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t id = recorder.begin(entry("all_gather", 100, "block.0"));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    recorder.finish(id);
  }
  recorder.finish(recorder.begin(entry("all_gather", 7, "block.1")));
  recorder.cancel(recorder.begin(entry("all_reduce", 9, "block.1")));
  const std::uint64_t polled = recorder.begin(entry("reduce_scatter", 50, "block.0"));
  recorder.finish_when(polled, [] { return true; });
  recorder.poll();
  const std::vector<FlightTotals> totals = recorder.totals();
  ASSERT_EQ(totals.size(), 3u);
  EXPECT_EQ(totals[0].unit, "block.0");
  EXPECT_EQ(totals[0].calls, 5);
  EXPECT_EQ(totals[0].bytes, 500);
  EXPECT_GE(totals[0].seconds, 0.010);
  EXPECT_EQ(totals[1].bytes, 7);
  EXPECT_EQ(totals[2].operation, "reduce_scatter");
  EXPECT_EQ(totals[2].seconds, 0) << "its end is noticed too late to be a measure";
}

TEST(FlightRecorder, TellsAnObserverOfEveryEnd) {
  FlightRecorder recorder;
  std::vector<std::string> names;
  recorder.observe([&](const FlightEntry& ended) { names.push_back(ended.name()); });
  recorder.finish(recorder.begin(entry("all_gather", 40960, "block.3")));
  recorder.observe({});
  recorder.finish(recorder.begin(entry("barrier", 0)));
  EXPECT_EQ(names, std::vector<std::string>{"all_gather of 'block.3', 40960 bytes, group world"});
}

TEST(FlightRecorder, APauseIsNotHeldAgainstWhatIsInProgress) {
  FlightRecorder recorder;
  recorder.begin(entry("all_reduce", 4));
  std::this_thread::sleep_for(200ms);
  EXPECT_TRUE(recorder.overdue(150ms));
  recorder.forgive(200ms);
  EXPECT_FALSE(recorder.overdue(150ms));
  recorder.forgive(1h);  // nothing begins in the future
  std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(recorder.overdue(5ms));
}

}  // namespace
}  // namespace tessera
