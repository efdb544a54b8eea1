#include "launch/nodes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "comm/failure.h"
#include "comm/meeting/meeting_place.h"
#include "comm/meeting/store.h"
#include "comm/socket.h"
#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kExchangeInterval{100};
constexpr milliseconds kFarewell{3000};

// Once anything has failed, every node ends its ranks within two seconds; the rest is slack for slow networks.
constexpr milliseconds kSettleTimeout{10'000};

}  // namespace

// What the launcher's thread and the exchange thread share.
struct NodeCircle::Shared {
  int node_rank, num_nodes;
  milliseconds node_timeout;
  std::unique_ptr<MeetingPlace> server;  // on node 0
  std::shared_ptr<MeetingClient> client;
  c10::intrusive_ptr<c10d::Store> store;

  mutable std::mutex mutex;
  std::condition_variable wake, done;
  std::vector<std::pair<std::string, std::string>> to_send;
  std::map<std::string, std::optional<std::string>> seen;  // every key that was asked for
  std::map<int, std::pair<std::int64_t, Clock::time_point>>
      beats;  // of the other nodes, on node 0: count, when it last grew
  Clock::time_point last_exchange = Clock::now();
  std::string error;
  bool stopping = false, finished = false;

  void exchange_loop();
  void exchange();
  void exchange_beats();
  bool is_silent(int node) const;  // with the lock held
};

NodeCircle::NodeCircle(JoinOptions join) : shared_(std::make_shared<Shared>()) {
  join.self.node_rank = join.self.rank;
  join.self.host = host_name();
  join.self.pid = getpid();
  join.self.version = version_text();
  join.who = "node";
  join.holder = "the launcher of node 0";
  if (join.self.rank == 0) {
    shared_->server =
        std::make_unique<MeetingPlace>(MeetingOptions{.interface = interface_of(join.host, /*one_host=*/false),
                                                      .port = join.port,
                                                      .num_peers = join.self.world_size,
                                                      .key = join.key,
                                                      .timeout = join.timeout,
                                                      .who = join.who,
                                                      .holder = join.holder,
                                                      .silence = join.silence});
    join.host = shared_->server->address();
  }
  shared_->node_rank = join.self.rank;
  shared_->num_nodes = join.self.world_size;
  shared_->node_timeout = join.silence;
  shared_->client = std::make_shared<MeetingClient>(join);
  shared_->store = c10::make_intrusive<MeetingStore>(shared_->client, join.timeout);
  std::thread([shared = shared_] { shared->exchange_loop(); }).detach();
}

NodeCircle::~NodeCircle() {
  const int num_followers = shared_->node_rank == 0 ? shared_->num_nodes - 1 : 0;
  const auto until = Clock::now() + kFarewell;
  put(fmt::format("bye/{}", shared_->node_rank), "bye");
  for (int node = 1; node <= num_followers; ++node) {
    const auto is_expected = [&] {
      const std::lock_guard lock(shared_->mutex);
      return !shared_->is_silent(node);
    };
    const std::string bye = fmt::format("bye/{}", node);
    while (!find(bye) && is_expected() && Clock::now() < until) std::this_thread::sleep_for(milliseconds(20));
  }
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->wake.notify_all();
  // If the thread hangs in the store of a dead head node, it is left behind: this process is about to exit.
  shared_->done.wait_until(lock, until, [&] { return shared_->finished; });
}

void NodeCircle::put(const std::string& key, const std::string& text) {
  const std::lock_guard lock(shared_->mutex);
  shared_->to_send.emplace_back(key, text);
  shared_->wake.notify_all();
}

std::optional<std::string> NodeCircle::find(const std::string& key) {
  const std::lock_guard lock(shared_->mutex);
  return shared_->seen[key];
}

std::string NodeCircle::host(int node) const {
  return shared_->client->roster().at(static_cast<std::size_t>(node)).host;
}

std::optional<std::string> NodeCircle::loss() const {
  const Shared& s = *shared_;
  const std::lock_guard lock(s.mutex);
  if (!s.error.empty()) return s.error;  // it names the head
  const auto limit = s.node_timeout;
  if (Clock::now() - s.last_exchange > limit) {
    return fmt::format("the launcher of node 0 ({}) has not answered for {}", host(0), format_duration(limit));
  }
  for (int node = 1; node < s.num_nodes; ++node) {
    const auto bye = s.seen.find(fmt::format("bye/{}", node));
    const bool has_left = bye != s.seen.end() && bye->second;
    if (!has_left && s.is_silent(node)) {
      return fmt::format("the launcher of node {} ({}) has not responded for {}", node, host(node),
                         format_duration(limit));
    }
  }
  return std::nullopt;
}

bool NodeCircle::Shared::is_silent(int node) const {
  const auto beat = beats.find(node);
  return beat != beats.end() && Clock::now() - beat->second.second > node_timeout;
}

void NodeCircle::Shared::exchange_loop() {
  std::unique_lock lock(mutex);
  try {
    while (!stopping || !to_send.empty()) {
      lock.unlock();
      exchange();
      lock.lock();
      last_exchange = Clock::now();
      wake.wait_for(lock, kExchangeInterval, [&] { return stopping || !to_send.empty(); });
    }
  } catch (const std::exception& failure) {
    if (!lock.owns_lock()) lock.lock();
    error = message_of(failure);
  }
  finished = true;
  done.notify_all();
}

// Calls the store without holding the lock: it may take long.
void NodeCircle::Shared::exchange() {
  std::vector<std::pair<std::string, std::string>> sending;
  std::vector<std::string> wanted;
  {
    const std::lock_guard lock(mutex);
    sending.swap(to_send);
    for (const auto& [key, text] : seen) {
      if (!text) wanted.push_back(key);
    }
  }
  for (const auto& [key, text] : sending) store->set(key, text);
  for (const std::string& key : wanted) {
    if (!store->check({key})) continue;
    std::string text = store->get_to_str(key);
    const std::lock_guard lock(mutex);
    seen[key] = std::move(text);
  }
  exchange_beats();
}

void NodeCircle::Shared::exchange_beats() {
  const auto name = [](int node) { return fmt::format("beat/{}", node); };
  store->add(name(node_rank), 1);
  for (int node = 1; node_rank == 0 && node < num_nodes; ++node) {
    const std::int64_t count = store->add(name(node), 0);
    const std::lock_guard lock(mutex);
    const auto found = beats.find(node);
    if (found == beats.end() || found->second.first != count) beats[node] = {count, Clock::now()};
  }
}

std::string Agreement::key(const std::string& name) const {
  return fmt::format("{}/{}", attempt_, name);
}

void Agreement::announce_meeting(int port) {
  circle_.put(key("meeting"), std::to_string(port));
}

std::optional<int> Agreement::find_meeting(milliseconds timeout) {
  const auto text = wait_for("meeting", timeout);
  if (!text) return std::nullopt;
  return static_cast<int>(parse_integer(*text).value_or(0));
}

void Agreement::announce_failure() {
  circle_.put(key("failed"), "failed");
}

bool Agreement::must_stop() {
  return circle_.find(key("failed")).has_value() || circle_.loss().has_value();
}

Verdict Agreement::settle(const Verdict& own, int max_restarts) {
  if (!own.is_well()) announce_failure();
  circle_.put(key(fmt::format("ended/{}", node_rank_)), json_text(own));
  if (node_rank_ == 0) {
    Verdict verdict = collect(own);
    verdict.restart = verdict.failure && !verdict.interrupted && loss_.empty() && attempt_ < max_restarts;
    circle_.put(key("verdict"), json_text(verdict));
    return verdict;
  }
  const auto text = wait_for("verdict", std::nullopt);
  if (text) return parse_json(*text, "the verdict of node 0").get<Verdict>();
  return own.is_well() ? lost_verdict() : merge({own, lost_verdict()});
}

Verdict Agreement::collect(const Verdict& own) {
  std::vector<Verdict> verdicts = {own};
  for (int node = 1; node < num_nodes_; ++node) {
    const auto text = wait_for(fmt::format("ended/{}", node), std::nullopt);
    verdicts.push_back(text ? parse_json(*text, "the verdict of a node").get<Verdict>() : lost_verdict());
    if (!text && signal_ != 0) break;
  }
  return merge(verdicts);
}

Verdict Agreement::lost_verdict() const {
  Verdict verdict;
  verdict.signal = signal_;
  verdict.trouble = signal_ != 0 ? "" : loss_;
  verdict.status = signal_ != 0 ? 128 + signal_ : static_cast<int>(ExitStatus::kRendezvous);
  return verdict;
}

// No time limit as long as all is well: another node's ranks may work for days.
std::optional<std::string> Agreement::wait_for(const std::string& name, std::optional<milliseconds> timeout) {
  std::optional<Clock::time_point> deadline;
  if (timeout) deadline = Clock::now() + *timeout;
  for (;; std::this_thread::sleep_for(milliseconds(20))) {
    if (auto text = circle_.find(key(name))) return text;
    if (is_interrupted()) return std::nullopt;
    if (const auto loss = circle_.loss()) {
      loss_ = *loss;
      return std::nullopt;
    }
    const bool is_ending = circle_.find(key("failed")).has_value() || circle_.find("bye/0").has_value();
    if (is_ending && !deadline) deadline = Clock::now() + kSettleTimeout;
    if (deadline && Clock::now() > *deadline) {
      loss_ = fmt::format("another node did not send '{}' in time", name);
      return std::nullopt;
    }
  }
}

bool Agreement::is_interrupted() {
  while (const auto signal = inbox_.next()) {
    if (asks_to_end(*signal)) signal_ = *signal;
  }
  return signal_ != 0;
}

}  // namespace tessera
