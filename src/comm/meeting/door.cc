#include "comm/meeting/door.h"

#include <algorithm>
#include <atomic>

#include "core/log.h"

namespace tessera {
namespace {

constexpr std::chrono::milliseconds kProofTimeout{5000};
constexpr std::size_t kMostVisitors = 256;
// In a flood, so many are let in at a time: each has 40 ms before newer ones take its place.
constexpr int kMostAtOnce = 64;
constexpr std::chrono::milliseconds kFloodPause{10}, kNoRoomPause{50};

// Once per process: a flood of connections must not be a flood of lines.
void report_stranger(const Socket& socket) {
  static std::atomic<bool> is_reported{false};
  if (is_reported.exchange(true)) return;
  log_warn("refused a connection from {} that does not hold this job's secret; further ones are not reported",
           socket.peer());
}

}  // namespace

void Door::watch(std::vector<pollfd>* fds) const {
  if (Clock::now() >= accept_again_) fds->push_back({listener_.descriptor(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) fds->push_back({visitor.socket.descriptor(), POLLIN, 0});
}

// Those inside are heard before newer ones can take their places.
std::vector<Door::Admitted> Door::admit() {
  std::vector<Admitted> admitted;
  for (auto next = visitors_.begin(); next != visitors_.end();) {
    const auto visitor = next++;
    switch (visitor->socket.read_exactly(kAnswerBytes, Clock::now(), &visitor->answer)) {
      case Socket::Got::kClosed:
        turn_away(visitor);
        break;
      case Socket::Got::kNothingInTime:
        if (Clock::now() > visitor->until) turn_away(visitor);
        break;
      case Socket::Got::kAll: {
        const auto client_nonce = check_answer(key_, visitor->nonce, visitor->answer);
        const Nonces nonces{visitor->nonce, client_nonce.value_or(Key{})};
        if (!client_nonce || !visitor->socket.write_all(make_server_proof(key_, nonces))) {
          turn_away(visitor);
          break;
        }
        admitted.push_back({std::move(visitor->socket), session_keys(key_, nonces)});
        visitors_.erase(visitor);
      }
    }
  }
  accept_visitors();
  return admitted;
}

void Door::accept_visitors() {
  if (Clock::now() < accept_again_) return;
  for (int i = 0; i < kMostAtOnce; ++i) {
    bool no_room = false;
    auto socket = listener_.accept(&no_room);
    if (no_room) accept_again_ = Clock::now() + kNoRoomPause;
    if (!socket) return;
    if (visitors_.size() == kMostVisitors) turn_away(visitors_.begin());
    visitors_.push_back({std::move(*socket), random_key(), Clock::now() + kProofTimeout});
    visitors_.back().socket.write_all(make_challenge(visitors_.back().nonce));
  }
  accept_again_ = Clock::now() + kFloodPause;
}

void Door::turn_away(std::list<Visitor>::iterator visitor) {
  report_stranger(visitor->socket);
  visitors_.erase(visitor);
}

void Door::close() {
  visitors_.clear();
  listener_ = Socket();
}

}  // namespace tessera
