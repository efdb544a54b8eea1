// Who may begin a run, and what those who may not are told.
#include "support/meeting.h"

#include "support/contains.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using namespace meeting_test;

TEST(Meeting, BringsRanksTogetherAndGivesThemAStore) {
  const MeetingPlace place(meeting_of(3));
  const Met met = meet(place, 3);
  EXPECT_EQ(met.clients[1]->roster().size(), 3U);
  EXPECT_EQ(met.clients[1]->roster()[2].host, "host2");
  for (const auto& client : met.clients) store_of(client).set("key", "value");
  EXPECT_EQ(store_of(met.clients[2]).get_to_str("key"), "value");
}

TEST(Meeting, NamesTheRanksThatNeverCame) {
  const MeetingPlace place(meeting_of(4, 300ms));
  const auto errors = meet(place, {peer(1, 4)}).errors;
  EXPECT_TRUE(contains(errors[0], "ranks 0, 2-3 of 4 never connected") && contains(errors[0], "connected: 1 on host1"))
      << errors[0];
}

TEST(Meeting, NamesTheirHostsWhereTheyAreKnown) {
  MeetingOptions options = meeting_of(3, 300ms);
  options.hosts = {"node1", "node1", "node2"};
  const MeetingPlace place(options);
  const auto errors = meet(place, {peer(0, 3)}).errors;
  EXPECT_TRUE(contains(errors[0], "ranks 1-2 on node1, node2 never connected")) << errors[0];
}

TEST(Meeting, GivesUpWhenTheFirstPeerDoes) {
  const MeetingPlace place(meeting_of(2, 60s));
  const std::string message = error_of([&] { MeetingClient client(join_of(place.port(), peer(0, 2), 300ms)); });
  EXPECT_TRUE(contains(message, "rank 1 of 2 never connected") && contains(message, "within 300ms")) << message;
}

TEST(Meeting, NamesTheSettingAndTheRankThatDiffers) {
  const MeetingPlace place(meeting_of(2));
  Peer a = peer(0, 2), b = peer(1, 2);
  a.settings["comm_timeout"] = "600000 ms";
  b.settings["comm_timeout"] = "5000 ms";
  for (const std::string& error : meet(place, {a, b}).errors) {
    EXPECT_TRUE(contains(error, "rank 1 on host1 (process 101) has comm_timeout 5000 ms, rank 0 on host0")) << error;
  }
}

TEST(Meeting, NamesTheVersionThatDiffers) {
  const MeetingPlace place(meeting_of(2));
  Peer other = peer(1, 2);
  other.version = "v2";
  for (const std::string& error : meet(place, {peer(0, 2), other}).errors)
    EXPECT_TRUE(contains(error, "has version v2")) << error;
}

TEST(Meeting, RefusesARankThatComesTwice) {
  const MeetingPlace place(meeting_of(3));
  Peer twin = peer(1, 3);
  twin.pid = 999;
  for (const std::string& error : meet(place, {peer(1, 3), twin}).errors)
    EXPECT_TRUE(contains(error, "rank 1 connected twice")) << error;
}

TEST(Meeting, RefusesAnotherNumberOfRanks) {
  const MeetingPlace place(meeting_of(2));
  for (const std::string& error : meet(place, {peer(1, 4)}).errors) {
    EXPECT_TRUE(contains(error, "expects 4 ranks, but 2 are expected")) << error;
  }
}

TEST(Meeting, DoesNotSeatARankThatCannotBe) {
  const MeetingPlace place(meeting_of(1));
  for (const int rank : {-7, 1, 1 << 30}) {
    Peer false_rank = peer(0, 1);
    false_rank.rank = rank;
    EXPECT_NE(error_of([&] { MeetingClient client(join_of(place.port(), false_rank)); }), "");
  }
  meet(place, 1);
}

TEST(Meeting, TellsTheOthersAtOnceWhenOneLeavesBeforeAllHaveCome) {
  const MeetingPlace place(meeting_of(3, 60s));
  std::thread leaver([&] { error_of([&] { MeetingClient client(join_of(place.port(), peer(1, 3), 300ms)); }); });
  std::vector<std::string> errors;
  const double seconds = seconds_of([&] { errors = meet(place, {peer(0, 3)}).errors; });
  leaver.join();
  EXPECT_TRUE(contains(errors[0], "rank") && contains(errors[0], "never connected")) << errors[0];
  EXPECT_LT(seconds, 5.0);
}

TEST(Meeting, SaysThatAPortIsInUse) {
  const Socket squatter = Socket::listen("127.0.0.1", 0);
  MeetingOptions options = meeting_of(1, 1s);
  options.port = squatter.local_port();
  EXPECT_TRUE(contains(error_of([&] { MeetingPlace place(options); }),
                       "port " + std::to_string(squatter.local_port()) + " is in use"));
}

TEST(Meeting, FindsOutInSecondsThatSomethingElseListens) {
  const Socket mute = Socket::listen("127.0.0.1", 0);  // accepts connections (by its backlog) and never sends anything
  std::string message;
  const double seconds = seconds_of(
      [&] { message = error_of([&] { MeetingClient client(join_of(mute.local_port(), peer(0, 2), 60s)); }); });
  EXPECT_TRUE(contains(message, "something other than a Tessera run listens on 127.0.0.1:")) << message;
  EXPECT_LT(seconds, 30.0);  // of the 60 s that it may take for all to come
}

TEST(Meeting, SaysThatNobodyListensOrThatAHostIsUnknown) {
  const int free_port = Socket::listen("127.0.0.1", 0).local_port();
  JoinOptions join = join_of(free_port, peer(0, 2), 200ms);
  EXPECT_TRUE(contains(error_of([&] { MeetingClient client(join); }), "no answer from 127.0.0.1"));
  join.host = "no-such-host.invalid";
  EXPECT_TRUE(contains(error_of([&] { MeetingClient client(join); }), "'no-such-host.invalid' cannot be resolved"));
}

TEST(Meeting, ListensWhereTheJobIsAndNowhereElse) {
  EXPECT_EQ(interface_of("localhost", true), "127.0.0.1");
  EXPECT_EQ(interface_of("127.0.0.1", false), "127.0.0.1");
  EXPECT_TRUE(contains(error_of([] { interface_of("no-such-host.invalid", true); }), "cannot be resolved"));
}

}  // namespace
}  // namespace tessera
