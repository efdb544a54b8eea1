#include "comm/lobby.h"

#include <gtest/gtest.h>

#include <thread>

#include "comm/socket.h"
#include "core/error.h"
#include "support/contains.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;

Guest guest(int rank, int world_size) {
  return {.rank = rank,
          .world_size = world_size,
          .host = "host" + std::to_string(rank),
          .pid = 100 + rank,
          .version = "v1"};
}

// Each guest joins in its own thread; returns what each was told: "" or the error.
std::vector<std::string> meet(LobbyServer& server, const std::vector<Guest>& guests) {
  std::vector<std::string> errors(guests.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < guests.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        const Meeting meeting = join_lobby("127.0.0.1", server.port(), guests[i], 10s);
        EXPECT_EQ(meeting.roster.size(), static_cast<std::size_t>(guests[i].world_size));
        EXPECT_EQ(meeting.roster[0].host, "host0");
        meeting.store->set("key" + std::to_string(guests[i].rank), std::vector<std::uint8_t>{1, 2, 3});
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), ExitStatus::kRendezvous);
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Lobby, BringsRanksTogetherAndGivesThemAStore) {
  LobbyServer server(0, 3, 10s);
  for (const std::string& error : meet(server, {guest(0, 3), guest(1, 3), guest(2, 3)})) EXPECT_EQ(error, "");
  EXPECT_TRUE(server.store()->check({"key0", "key1", "key2"}));
}

TEST(Lobby, NamesTheRanksThatNeverCame) {
  LobbyServer server(0, 4, 300ms);
  const auto errors = meet(server, {guest(1, 4)});
  EXPECT_TRUE(contains(errors[0], "ranks 0, 2-3 of 4 never connected") && contains(errors[0], "connected: 1 on host1"))
      << errors[0];
}

TEST(Lobby, GivesUpWhenTheFirstGuestDoes) {
  LobbyServer server(0, 2, 60s);
  std::string message;
  try {
    join_lobby("127.0.0.1", server.port(), guest(0, 2), 300ms);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_TRUE(contains(message, "rank 1 of 2 never connected") && contains(message, "within 300ms")) << message;
}

TEST(Lobby, NamesTheSettingAndTheRankThatDiffers) {
  LobbyServer server(0, 2, 10s);
  Guest a = guest(0, 2), b = guest(1, 2);
  a.settings["comm_timeout"] = "600000 ms";
  b.settings["comm_timeout"] = "5000 ms";
  for (const std::string& error : meet(server, {a, b})) {
    EXPECT_TRUE(contains(error, "rank 1 on host1 (process 101) has comm_timeout 5000 ms, rank 0 on host0")) << error;
  }
}

TEST(Lobby, NamesTheVersionThatDiffers) {
  LobbyServer server(0, 2, 10s);
  Guest other = guest(1, 2);
  other.version = "v2";
  for (const std::string& error : meet(server, {guest(0, 2), other}))
    EXPECT_TRUE(contains(error, "has version v2")) << error;
}

TEST(Lobby, RefusesARankThatComesTwice) {
  LobbyServer server(0, 3, 10s);
  Guest twin = guest(1, 3);
  twin.pid = 999;
  for (const std::string& error : meet(server, {guest(1, 3), twin}))
    EXPECT_TRUE(contains(error, "rank 1 connected twice")) << error;
}

TEST(Lobby, RefusesAnotherNumberOfRanks) {
  LobbyServer server(0, 2, 10s);
  for (const std::string& error : meet(server, {guest(1, 4)})) {
    EXPECT_TRUE(contains(error, "expects 4 ranks, but 2 are expected")) << error;
  }
}

TEST(Lobby, TurnsAwayAnotherJobAndGoesOn) {
  LobbyServer server(0, 2, 10s, "rank", "job-a");
  Guest a = guest(0, 2), b = guest(1, 2), stranger = guest(1, 2);
  a.job_id = b.job_id = "job-a";
  stranger.job_id = "job-b";
  std::string stranger_error;
  try {
    join_lobby("127.0.0.1", server.port(), stranger, 5s);
  } catch (const Error& error) {
    stranger_error = error.what();
  }
  EXPECT_TRUE(contains(stranger_error, "job 'job-b'") && contains(stranger_error, "two jobs share one port"))
      << stranger_error;
  for (const std::string& error : meet(server, {a, b})) EXPECT_EQ(error, "");
}

TEST(Lobby, TellsTheOthersAtOnceWhenOneLeavesBeforeAllHaveCome) {
  LobbyServer server(0, 3, 60s);
  std::thread leaver([&] {
    Socket socket = Socket::connect("127.0.0.1", server.port(), std::chrono::steady_clock::now() + 2s);
    socket.write_line(
        R"({"rank":1,"world_size":3,"host":"h","pid":5,"job_id":"","version":"v1","settings":{},"patience_ms":60000,)"
        R"("node_rank":-1})");
    std::this_thread::sleep_for(300ms);
  });
  std::vector<std::string> errors;
  const double seconds = seconds_of([&] { errors = meet(server, {guest(0, 3)}); });
  leaver.join();
  EXPECT_TRUE(contains(errors[0], "rank 1 on h (process 5) exited before all ranks had connected")) << errors[0];
  EXPECT_LT(seconds, 5.0);
}

TEST(Lobby, SaysThatAPortIsInUse) {
  const Socket squatter = Socket::listen(0);
  try {
    LobbyServer server(squatter.local_port(), 1, 1s);
    FAIL() << "a used port was taken";
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "port " + std::to_string(squatter.local_port()) + " is in use")) << error.what();
    EXPECT_EQ(error.status(), ExitStatus::kRendezvous);
  }
}

TEST(Lobby, FindsOutInSecondsThatSomethingElseListens) {
  const Socket mute = Socket::listen(0);  // accepts connections (by its backlog) and never sends anything
  std::string message;
  const double seconds = seconds_of([&] {
    try {
      join_lobby("127.0.0.1", mute.local_port(), guest(0, 2), 60s);
    } catch (const Error& error) {
      message = error.what();
    }
  });
  EXPECT_TRUE(contains(message, "something other than a Tessera run listens on 127.0.0.1:")) << message;
  EXPECT_LT(seconds, 6.0);
}

TEST(Lobby, SaysThatNobodyListensOrThatAHostIsUnknown) {
  int free_port;
  { free_port = Socket::listen(0).local_port(); }
  const auto error_of = [&](const std::string& host, int port) -> std::string {
    try {
      join_lobby(host, port, guest(0, 2), 200ms);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(contains(error_of("127.0.0.1", free_port), "no answer from 127.0.0.1"));
  EXPECT_TRUE(contains(error_of("no-such-host.invalid", 29500), "'no-such-host.invalid' cannot be resolved"));
}

TEST(Lobby, IgnoresStrangersThatTalkNonsense) {
  LobbyServer server(0, 1, 10s);
  Socket scanner = Socket::connect("127.0.0.1", server.port(), std::chrono::steady_clock::now() + 2s);
  scanner.write_line("GET / HTTP/1.1");
  for (const std::string& error : meet(server, {guest(0, 1)})) EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace tessera
