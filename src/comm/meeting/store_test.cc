// The store that ranks share, and what it says when one of them is lost.
#include "comm/meeting/store.h"

#include "support/contains.h"
#include "support/meeting.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using namespace meeting_test;

TEST(MeetingStoreRequests, DoesWhatC10dExpects) {
  const MeetingPlace place(meeting_of(2));
  const Met met = meet(place, 2);
  MeetingStore a = store_of(met.clients[0]), b = store_of(met.clients[1]);
  EXPECT_EQ(a.add("count", 3), 3);
  EXPECT_EQ(b.add("count", -1), 2);
  EXPECT_EQ(a.get_to_str("count"), "2");
  EXPECT_EQ(a.compareSet("once", "", "mine"), "mine");
  EXPECT_EQ(b.compareSet("once", "", "yours"), "mine");
  EXPECT_EQ(b.compareSet("once", "mine", "yours"), "yours");
  EXPECT_EQ(a.compareSet("absent", "guess", "x"), "guess");
  a.append("log", {'1'});
  b.append("log", {'2'});
  EXPECT_EQ(a.get_to_str("log"), "12");
  EXPECT_TRUE(a.check({"count", "once"}));
  EXPECT_FALSE(a.check({"count", "absent"}));
  EXPECT_EQ(a.getNumKeys(), 3);
  EXPECT_TRUE(b.deleteKey("log"));
  EXPECT_FALSE(b.deleteKey("log"));
  const std::vector<std::uint8_t> binary = {0, 255, 10, 0};
  a.set("binary", binary);
  EXPECT_EQ(b.clone()->get("binary"), binary);
}

TEST(MeetingStoreRequests, AWaitForAKeyEndsWhenItIsSetOrTheTimeIsUp) {
  const MeetingPlace place(meeting_of(2));
  const Met met = meet(place, 2);
  MeetingStore a = store_of(met.clients[0]), b = store_of(met.clients[1], 300ms);
  std::thread setter([&] {
    std::this_thread::sleep_for(200ms);
    a.set("late", "here");
  });
  EXPECT_EQ(store_of(met.clients[1]).get_to_str("late"), "here");
  setter.join();
  std::string message;
  EXPECT_LT(seconds_of([&] { message = error_of([&] { b.get("never"); }); }), 5);
  EXPECT_TRUE(contains(message, "no rank has set never in the run's store within 300ms")) << message;
  EXPECT_LT(seconds_of([&] { message = error_of([&] { b.wait({"never"}, 200ms); }); }), 5);
}

// The rank that asks is told so, and stays.
TEST(MeetingStoreRequests, ARequestThatIsWrongIsRefused) {
  const MeetingPlace place(meeting_of(1));
  const Met met = meet(place, 1);
  MeetingStore store = store_of(met.clients[0]);
  store.set("text", "abc");
  EXPECT_TRUE(contains(error_of([&] { store.add("text", 1); }), "an addition to a value that is not a number"));
  EXPECT_TRUE(contains(error_of([&] { store.set(std::string(5000, 'k'), "x"); }), "a key that is empty or too long"));
  const std::vector<std::uint8_t> large(3 << 20, 'v');
  store.set("a", large);
  store.set("b", large);
  store.wait({"a", "b"});  // brings no values
  EXPECT_EQ(store.get("b"), large);
  EXPECT_EQ(store.get_to_str("text"), "abc");
  EXPECT_EQ(store_of(met.clients[0], 20 * 24h).get_to_str("text"), "abc");  // longer than anybody waits
}

TEST(MeetingStoreRequests, ServesManyThreadsAtOnce) {
  const MeetingPlace place(meeting_of(2));
  const Met met = meet(place, 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      MeetingStore store = store_of(met.clients[static_cast<std::size_t>(i % 2)]);
      for (int n = 0; n < 50; ++n) store.add("sum", 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_of(met.clients[0]).add("sum", 0), 400);
}

TEST(MeetingStoreRequests, SaysWhoIsGoneWhenItsHolderEnds) {
  auto place = std::make_unique<MeetingPlace>(meeting_of(2));
  const Met met = meet(*place, 2);
  place.reset();
  const std::string message = error_of([&] { store_of(met.clients[1]).get("key"); });
  EXPECT_TRUE(contains(message, "rank 0 on host0 is gone")) << message;
}

TEST(MeetingStoreRequests, RefusesAValueThatIsTooLarge) {
  const MeetingPlace place(meeting_of(1));
  const Met met = meet(place, 1);
  MeetingStore store = store_of(met.clients[0]);
  EXPECT_THROW(store.set("key", std::string(kMostMessageBytes, 'x')), Error);
  store.set("key", "small");  // the connection is as good as before
  EXPECT_EQ(store.get_to_str("key"), "small");
}

std::optional<Finding> finding_of(WatchLine& line, std::chrono::milliseconds limit = 6s) {
  const auto until = SteadyClock::now() + limit;
  bool has_answered = false;
  while (SteadyClock::now() < until) {
    const WatchLine::News news = line.news();
    if (news.finding) return news.finding;
    if (news.is_inquiry && !has_answered) line.publish("[]");
    has_answered = has_answered || news.is_inquiry;
    std::this_thread::sleep_for(20ms);
  }
  return std::nullopt;
}

TEST(MeetingLoss, ARankWhoseConnectionClosesIsNamedToAllInSeconds) {
  const MeetingPlace place(meeting_of(3));
  Met met = meet(place, 3);
  met.clients[1].reset();  // without a goodbye, as when its process dies
  for (const int rank : {0, 2}) {
    const auto finding = finding_of(*met.clients[static_cast<std::size_t>(rank)], 5s);
    ASSERT_TRUE(finding);
    EXPECT_TRUE(contains(finding->message, "rank 1 on host1 is gone: its process ended without reporting an error"));
    EXPECT_EQ(finding->status, 43);
  }
}

TEST(MeetingLoss, ARankThatSaysGoodbyeIsNotLost) {
  const MeetingPlace place(meeting_of(2));
  Met met = meet(place, 2);
  met.clients[1]->say_goodbye();
  met.clients[1].reset();
  EXPECT_FALSE(finding_of(*met.clients[0], 1500ms));
  EXPECT_FALSE(place.all_have_left());
  met.clients[0]->say_goodbye();
  EXPECT_TRUE(place.all_have_left());
}

TEST(MeetingLoss, TheEndOfThePlaceIsNoLossToARankWhoseGoodbyeWasAnswered) {
  auto place = std::make_unique<MeetingPlace>(meeting_of(2));
  const Met met = meet(*place, 2);
  // As say_goodbye() does, up to the moment when its caller has yet to wake up.
  met.clients[1]->request(MessageType::kGoodbye, "");
  place.reset();
  for (const auto& client : met.clients) EXPECT_NE(error_of([&] { client->request(MessageType::kGoodbye, ""); }), "");
  EXPECT_EQ(met.clients[1]->news().lost, "");
  EXPECT_NE(met.clients[0]->news().lost, "");
}

TEST(MeetingLoss, AnAlarmReachesAllAndCannotMakeARunSucceed) {
  const MeetingPlace place(meeting_of(2));
  const Met met = meet(place, 2);
  met.clients[1]->raise({.rank = 0, .status = 0, .message = "the disk is full"});
  for (const auto& client : met.clients) {
    const auto finding = finding_of(*client);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->status, 1);
    EXPECT_EQ(finding->speaker, 1);  // who sent it, whatever it says
    EXPECT_EQ(finding->message, "rank 1 on host1: the disk is full");
  }
}

}  // namespace

}  // namespace tessera
