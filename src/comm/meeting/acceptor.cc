#include "comm/meeting/acceptor.h"

#include <fmt/format.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>

#include "comm/meeting/failure_report.h"
#include "comm/meeting/message_line.h"
#include "core/log.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/version.h"

namespace tessera {
namespace {

constexpr int kLargestWorld = 1 << 20;
constexpr std::size_t kMostNameBytes = 255;

std::int64_t number_of(const Json& json, const char* name, std::int64_t low, std::int64_t high) {
  const auto value = json.at(name).get<std::int64_t>();
  if (!json.at(name).is_number_integer() || value < low || value > high) {
    throw ProtocolError(fmt::format("{} is out of its range", name));
  }
  return value;
}

std::string name_in(const Json& json, const char* name) {
  std::string text = json.at(name).get<std::string>();
  if (text.empty() || text.size() > kMostNameBytes) throw ProtocolError(fmt::format("{} has a wrong length", name));
  return text;
}

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

Json to_json(const Peer& peer) {
  return {{"rank", peer.rank},       {"world_size", peer.world_size}, {"host", peer.host},          {"pid", peer.pid},
          {"version", peer.version}, {"settings", peer.settings},     {"node_rank", peer.node_rank}};
}

Peer peer_from_json(const Json& json) {
  try {
    const auto world_size = static_cast<int>(number_of(json, "world_size", 1, kLargestWorld));
    return {.rank = static_cast<int>(number_of(json, "rank", 0, world_size - 1)),
            .world_size = world_size,
            .host = name_in(json, "host"),
            .pid = number_of(json, "pid", 1, std::int64_t{1} << 32),
            .version = name_in(json, "version"),
            .settings = json.at("settings").get<std::map<std::string, std::string>>(),
            .node_rank = static_cast<int>(number_of(json, "node_rank", -1, kLargestWorld))};
  } catch (const Json::exception& error) {
    throw ProtocolError(error.what());
  }
}

std::string version_text() {
  return fmt::format("tessera {}, torch {}", kVersion, TORCH_VERSION);
}

std::string PeerBook::enter(const Peer& peer, std::chrono::milliseconds patience) {
  if (peer.world_size != options_.num_peers) {
    return fmt::format(
        "{} expects {} {}s, but {} are expected on port {}: WORLD_SIZE differs, or two jobs share one port",
        name_of(peer), peer.world_size, options_.who, options_.num_peers, port_);
  }
  if (const auto twin = entries_.find(peer.rank); twin != entries_.end()) {
    return fmt::format("{} {} connected twice to port {}: {} and {}; two jobs share one port, or RANK is set wrongly",
                       options_.who, peer.rank, port_, name_of(twin->second.peer), name_of(peer));
  }
  entries_.emplace(peer.rank, Entry{peer, Clock::now() + patience, patience});
  return {};
}

std::string PeerBook::absence(Clock::time_point now) const {
  const auto left = std::ranges::find_if(entries_, [&](const auto& e) { return e.second.until < now; });
  if (now < deadline_ && left == entries_.end()) return {};
  std::vector<int> absent;
  for (int rank = 0; rank < options_.num_peers; ++rank) {
    if (entries_.count(rank) == 0) absent.push_back(rank);
  }
  std::vector<std::string> came;
  for (const auto& [rank, entry] : entries_) came.push_back(fmt::format("{} on {}", rank, entry.peer.host));
  const std::string who = options_.hosts.empty()
                              ? fmt::format("{}{} {} of {}", options_.who, absent.size() == 1 ? "" : "s",
                                            format_ranges(absent), options_.num_peers)
                              : name_ranks(absent, options_.hosts);
  return fmt::format("{} never connected to port {} within {}; connected: {}", who, port_,
                     format_duration(left != entries_.end() ? left->second.patience : options_.timeout),
                     came.empty() ? "none" : join(came, ", "));
}

std::string PeerBook::departure(int rank) const {
  return fmt::format("{} exited before all {}s had connected", name_of(entries_.at(rank).peer), options_.who);
}

std::string PeerBook::disagreement() const {
  std::vector<std::string> differences;
  for (const auto& [rank, entry] : entries_) {
    std::string text = difference(entries_.begin()->second.peer, entry.peer);
    if (!text.empty()) differences.push_back(std::move(text));
  }
  if (differences.empty()) return {};
  constexpr std::size_t kMostNamed = 4;
  const std::size_t more = differences.size() > kMostNamed ? differences.size() - kMostNamed : 0;
  if (more > 0) differences.resize(kMostNamed);
  return fmt::format("the {}s do not match: {}{}", options_.who, join(differences, "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

std::vector<Peer> PeerBook::roster() const {
  std::vector<Peer> peers;
  for (const auto& [rank, entry] : entries_) {
    peers.push_back(entry.peer);
    peers.back().settings.clear();
  }
  return peers;
}

std::string PeerBook::name_of(const Peer& peer) const {
  return fmt::format("{} {} on {} (process {})", options_.who, peer.rank, peer.host, peer.pid);
}

// The first way in which a peer differs from another, or nothing.
std::string PeerBook::difference(const Peer& a, const Peer& b) const {
  const auto tell = [&](const std::string& what, const std::string& of_a, const std::string& of_b) {
    return fmt::format("{} has {} {}, {} has {}", name_of(b), what, of_b, name_of(a), of_a);
  };
  if (a.version != b.version) return tell("version", a.version, b.version);
  for (const auto& [key, value] : a.settings) {
    const auto other = b.settings.find(key);
    if (other == b.settings.end()) return tell(key, value, "unset");
    if (other->second != value) return tell(key, value, other->second);
  }
  for (const auto& [key, value] : b.settings) {
    if (a.settings.count(key) == 0) return tell(key, "unset", value);
  }
  return {};
}

void Acceptor::watch(std::vector<pollfd>* fds) const {
  if (Clock::now() >= accept_again_) fds->push_back({listener_.descriptor(), POLLIN, 0});
  for (const Visitor& visitor : visitors_) fds->push_back({visitor.socket.descriptor(), POLLIN, 0});
}

// Those inside are heard before newer ones can take their places.
std::vector<Acceptor::Admitted> Acceptor::admit() {
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

void Acceptor::accept_visitors() {
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

void Acceptor::turn_away(std::list<Visitor>::iterator visitor) {
  report_stranger(visitor->socket);
  visitors_.erase(visitor);
}

void Acceptor::close() {
  visitors_.clear();
  listener_ = Socket();
}

}  // namespace tessera
