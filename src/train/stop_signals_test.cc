#include "train/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace tessera {
namespace {

TEST(StopSignals, AreTakenAsAWishWhileItLives) {
  const StopSignals signals;
  EXPECT_EQ(StopSignals::received(), 0);
  std::raise(SIGUSR1);
  std::raise(SIGTERM);
  EXPECT_EQ(StopSignals::received(), SIGUSR1);  // the first
}

TEST(StopSignalsDeathTest, ASecondInterruptEndsAtOnce) {
  const auto interrupt_twice = [] {
    const StopSignals signals;
    std::raise(SIGINT);
    if (StopSignals::received() != SIGINT) std::_Exit(3);
    std::raise(SIGINT);
    std::_Exit(4);
  };
  EXPECT_EXIT(interrupt_twice(), testing::KilledBySignal(SIGINT), "");
}

TEST(StopSignals, OneThatWasIgnoredStaysIgnored) {
  std::signal(SIGUSR1, SIG_IGN);
  {
    const StopSignals signals;
    std::raise(SIGUSR1);
    EXPECT_EQ(StopSignals::received(), 0);
  }
  EXPECT_EQ(std::signal(SIGUSR1, SIG_DFL), SIG_IGN);
  EXPECT_EQ(std::signal(SIGTERM, SIG_DFL), SIG_DFL);
}

TEST(StopSignals, HaveNames) {
  EXPECT_EQ(stop_signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(stop_signal_name(SIGUSR1), "SIGUSR1");
}

TEST(StopVote, EveryRankHearsOfItOneStepLater) {
  run_thread_ranks(3, {}, [](World& world) {
    StopVote agreement(world);
    for (int step = 0; step < 5; ++step) {
      const int own = world.rank() == 1 && step >= 2 ? SIGUSR1 : 0;
      EXPECT_EQ(agreement.after_step({.signal = own}).signal, step >= 3 ? SIGUSR1 : 0) << step;
    }
  });
}

TEST(StopVote, EveryRankHearsWhenTheLastOneHasWritten) {
  run_thread_ranks(3, {}, [](World& world) {
    StopVote agreement(world);
    for (int step = 0; step < 8; ++step) {
      const bool is_writing = step >= 1 && step < 2 + world.rank();  // rank 2 until after step 3
      EXPECT_EQ(agreement.after_step({.is_writing = is_writing}).is_writing, step >= 2 && step <= 4) << step;
    }
  });
}

TEST(StopVote, ALoneRankAsksNobody) {
  run_thread_ranks(1, {}, [](World& world) {
    StopVote agreement(world);
    EXPECT_EQ(agreement.after_step({}).signal, 0);
    EXPECT_EQ(agreement.after_step({.signal = SIGTERM}).signal, SIGTERM);
    EXPECT_TRUE(agreement.after_step({.is_writing = true}).is_writing);
  });
}

}  // namespace
}  // namespace tessera
