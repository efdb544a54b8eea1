#include "launch/agreement.h"

#include <fmt/format.h>

#include <thread>
#include <vector>

#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Once anything has failed, every node ends its ranks within two seconds; the rest is slack for slow networks.
constexpr milliseconds kSettleTimeout{10'000};

// A log's path or a rank's last words may not be valid UTF-8.
std::string as_text(const Verdict& verdict) {
  return json_text(to_json(verdict));
}

}  // namespace

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
  circle_.put(key(fmt::format("ended/{}", node_rank_)), as_text(own));
  if (node_rank_ == 0) {
    Verdict verdict = collect(own);
    verdict.restart = verdict.failure && !verdict.interrupted && loss_.empty() && attempt_ < max_restarts;
    circle_.put(key("verdict"), as_text(verdict));
    return verdict;
  }
  const auto text = wait_for("verdict", std::nullopt);
  if (text) return verdict_from_json(parse_json(*text, "the verdict of node 0"));
  return own.is_well() ? lost_verdict() : merge({own, lost_verdict()});
}

Verdict Agreement::collect(const Verdict& own) {
  std::vector<Verdict> verdicts = {own};
  for (int node = 1; node < num_nodes_; ++node) {
    const auto text = wait_for(fmt::format("ended/{}", node), std::nullopt);
    verdicts.push_back(text ? verdict_from_json(parse_json(*text, "the verdict of a node")) : lost_verdict());
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
