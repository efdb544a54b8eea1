// Strangers that connect to a meeting.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>

#include "support/contains.h"
#include "support/meeting.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using namespace meeting_test;

class Strangers : public testing::Test {
 protected:
  Socket connect() const { return Socket::connect("127.0.0.1", place_.port(), SteadyClock::now() + 5s); }
  // The other end has closed, without an answer beyond the challenge.
  static bool is_cut_off(const Socket& socket, std::chrono::milliseconds limit = 8s) {
    std::string rest;
    socket.read_exactly(kChallengeBytes, SteadyClock::now() + limit, &rest);
    return socket.read_exactly(kChallengeBytes + 1, SteadyClock::now() + limit, &rest) == Socket::Got::kClosed;
  }

  const MeetingPlace place_{meeting_of(2)};
};

TEST_F(Strangers, WithAnotherSecretAreRefusedAndTheMeetingGoesOn) {
  JoinOptions stranger = join_of(place_.port(), peer(1, 2), 1s);
  stranger.key = random_key();
  const std::string message = error_of([&] { MeetingClient client(stranger); });
  EXPECT_TRUE(contains(message, "does not accept the secret of rank 1 on host1") &&
              contains(message, "two jobs share one port"))
      << message;
  meet(place_, 2);
}

TEST_F(Strangers, ThatTalkNonsenseAreCutOff) {
  const Socket scanner = connect();
  scanner.write_all(
      "GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: a scanner that sends more than an answer\r\n\r\n");
  EXPECT_TRUE(is_cut_off(scanner));
  meet(place_, 2);
}

TEST_F(Strangers, ThatReplayARecordedAnswerAreCutOff) {
  // What a rank answered to a challenge before.
  const Nonces before{random_key(), random_key()};
  const Socket thief = connect();
  thief.write_all(make_answer(kJobKey, before));
  EXPECT_TRUE(is_cut_off(thief));
  meet(place_, 2);
}

TEST_F(Strangers, ThatSayNothingAreCutOffInSeconds) {
  const Socket mute = connect();
  EXPECT_TRUE(is_cut_off(mute));
}

TEST_F(Strangers, ThatSendAGiantLineCostNothing) {
  const Socket giant = connect();
  const std::string part(1 << 20, 'x');
  std::size_t num_sent = 0;
  bool is_closed = false;
  while (!is_closed && num_sent < 300 * part.size()) {
    pollfd ready{giant.descriptor(), POLLOUT, 0};
    ASSERT_EQ(poll(&ready, 1, 2000), 1) << "nobody reads or closes the connection";
    const ssize_t count = send(giant.descriptor(), part.data(), part.size(), MSG_NOSIGNAL);
    is_closed = count < 0 && (errno == EPIPE || errno == ECONNRESET);
    if (count > 0) num_sent += static_cast<std::size_t>(count);
  }
  EXPECT_TRUE(is_closed);                      // after the 64 bytes of an answer
  EXPECT_LT(num_sent, std::size_t{32} << 20);  // no more than the kernel's buffers hold
  meet(place_, 2);
}

TEST_F(Strangers, ThatFloodThePortDoNotKeepRanksOut) {
  std::atomic<bool> done{false};
  std::vector<std::thread> floods;
  for (int i = 0; i < 2; ++i) {
    floods.emplace_back([&] {
      std::vector<Socket> held;  // half-open in the protocol: connected, and silent
      for (int n = 0; n < 1000 && !done; ++n) {
        try {
          held.push_back(connect());
        } catch (const Error&) {
          return;  // the port has been closed: the meeting has begun
        }
        if (held.size() > 300) held.erase(held.begin());
      }
    });
  }
  std::this_thread::sleep_for(200ms);
  meet(place_, 2);
  done = true;
  for (std::thread& flood : floods) flood.join();
}

TEST_F(Strangers, FindAClosedPortOnceTheRanksHaveMet) {
  const Met met = meet(place_, 2);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(contains(error_of([&] { Socket::connect("127.0.0.1", place_.port(), SteadyClock::now() + 100ms); }),
                       "no answer from"));
}

TEST(StrangersServer, ThatDoesNotHoldTheKeyIsRefused) {
  const Socket listener = Socket::listen("127.0.0.1", 0);
  std::atomic<bool> done{false};
  std::thread impostor([&] {
    while (!done) {
      const auto visitor = listener.accept();
      if (!visitor) continue;
      std::string answer;
      visitor->write_all(make_challenge(random_key()));
      visitor->read_exactly(kAnswerBytes, SteadyClock::now() + 2s, &answer);
      visitor->write_all(answer.substr(sizeof(Key)));  // reflects the rank's own proof
    }
  });
  const std::string message = error_of([&] { MeetingClient client(join_of(listener.local_port(), peer(0, 2))); });
  done = true;
  impostor.join();
  EXPECT_TRUE(contains(message, "cannot prove that it belongs to this job")) << message;
}

}  // namespace
}  // namespace tessera
