#include "comm/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace tessera {
namespace {

using namespace std::chrono_literals;

// Hears what the watchdog says, and says what the test wants.
class FakeLine : public WatchLine {
 public:
  void raise(const Alarm& alarm) override {
    const std::lock_guard lock(mutex_);
    alarm_ = alarm;
  }
  void publish(const std::string&) override { ++num_published; }
  News news() override {
    const std::lock_guard lock(mutex_);
    return news_;
  }
  std::string holder() const override { return "rank 0 on node1"; }

  void tell(const News& news) {
    const std::lock_guard lock(mutex_);
    news_ = news;
  }
  std::optional<Alarm> alarm() {
    const std::lock_guard lock(mutex_);
    return alarm_;
  }
  std::atomic<int> num_published{0};

 private:
  std::mutex mutex_;
  News news_;
  std::optional<Alarm> alarm_;
};

class WatchdogTest : public ::testing::Test {
 protected:
  void start(std::chrono::milliseconds comm_timeout) {
    watchdog_ = std::make_unique<Watchdog>(line_, recorder_,
                                           WatchdogOptions{.rank = 1,
                                                           .comm_timeout = comm_timeout,
                                                           .finding_timeout = 300ms,
                                                           .end = [this](const Ending& e) { ended_.set_value(e); }});
  }
  std::uint64_t begin() {
    FlightEntry entry;
    entry.group = "world";
    entry.ranks = {0, 1};
    entry.operation = "all_reduce";
    return recorder_->begin(entry);
  }
  Ending ending() {
    auto ended = ended_.get_future();
    EXPECT_EQ(ended.wait_for(20s), std::future_status::ready);
    return ended.get();
  }

  std::shared_ptr<FakeLine> line_ = std::make_shared<FakeLine>();
  std::shared_ptr<FlightRecorder> recorder_ = std::make_shared<FlightRecorder>();
  std::promise<Ending> ended_;
  std::unique_ptr<Watchdog> watchdog_;
};

TEST_F(WatchdogTest, RaisesTheAlarmAndEndsWithTheFinding) {
  start(200ms);
  begin();
  while (!line_->alarm()) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(line_->alarm()->stuck);
  line_->tell({.finding = Finding{"rank 0 on node1 did not answer", 43, 1}});
  const Ending end = ending();
  EXPECT_EQ(end.message, "rank 0 on node1 did not answer");
  EXPECT_TRUE(end.speaks);
}

TEST_F(WatchdogTest, EndsByItselfIfWhoeverCollectsIsSilent) {
  start(200ms);
  begin();
  line_->tell({.silence = 3s});
  const Ending end = ending();
  EXPECT_TRUE(end.message.starts_with("rank 0 on node1 has not answered for")) << end.message;
  EXPECT_EQ(end.status, 43);
}

// Its own words are worth more than that nobody heard them.
TEST_F(WatchdogTest, AnOwnFailureThatNobodyHearsIsToldAsItIs) {
  start(10s);
  line_->tell({.silence = 3s});
  std::thread failing([&] { watchdog_->raise("the disk is full", 1); });
  const Ending end = ending();
  EXPECT_EQ(end.message, "the disk is full");
  EXPECT_TRUE(end.is_own_failure);
  failing.join();
}

// CUDA may keep whoever asks for as long as a peer is stopped.
TEST_F(WatchdogTest, IsNotKeptByAnOperationThatCannotBeAsked) {
  std::promise<void> free;
  const std::uint64_t id = begin();
  recorder_->finish_when(id, [&] {
    free.get_future().wait();
    return true;
  });
  start(200ms);
  line_->tell({.silence = 3s});
  EXPECT_EQ(ending().status, 43);
  free.set_value();
}

TEST_F(WatchdogTest, NamesAnOperationThatFailedWhenAsked) {
  recorder_->finish_when(begin(), []() -> bool { throw std::runtime_error("remote process exited"); });
  start(10s);
  while (!line_->alarm()) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(line_->alarm()->message, "remote process exited");
}

}  // namespace
}  // namespace tessera
