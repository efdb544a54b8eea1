#include "comm/meeting/failure_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

// An operation fails because its partner died: wait a little for news of that.
constexpr std::chrono::milliseconds kCauseGrace{500};
// How long after a pause of the holder it is still to blame.
constexpr std::chrono::milliseconds kPauseMemory{5000};

// A run that raised an alarm has failed: no alarm makes it end with 0.
int failing(int status) {
  return status >= 1 && status <= 255 ? status : static_cast<int>(ExitStatus::kFailure);
}

template <typename T>
T read_or_throw(const std::string& text, const char* what, const Json& preset = Json::object()) {
  try {
    Json json = preset;
    json.update(parse_json(text, what));
    T read = json.get<T>();
    read.status = failing(read.status);
    return read;
  } catch (const std::exception& error) {
    throw ProtocolError(fmt::format("{} that cannot be read: {}", what, error.what()));
  }
}

}  // namespace

std::string Alarm::to_text() const {
  Json json = *this;
  if (!stuck) json.erase("stuck");
  return json_text(json);
}

Alarm Alarm::from_text(const std::string& text) {
  return read_or_throw<Alarm>(text, "an alarm", {{"stuck", nullptr}});
}

std::string Finding::to_text() const {
  return json_text(*this);
}

Finding Finding::from_text(const std::string& text) {
  return read_or_throw<Finding>(text, "a finding");
}

void FailureReport::hear_alarm(const Alarm& alarm) {
  alarmed_.insert(alarm.rank);
  if (!alarm_) alarm_ = alarm;  // the first counts for all: if two ranks time out together, all report the same one
  if (!opened_) opened_ = Clock::now();
}

void FailureReport::hear_flight(int rank, const std::string& dump) {
  flights_[rank] = FlightRecorder::parse_dump(dump);
}

void FailureReport::note_loss(int rank, Loss loss) {
  if (!is_present(rank)) return;
  // It did not end silently: while this process was stopped, it has waited for the finding and given up.
  if (alarmed_.count(rank) != 0) return note_leave(rank);
  losses_[rank] = loss;
  if (!first_loss_) first_loss_ = Clock::now();
  if (!opened_) opened_ = first_loss_;
}

void FailureReport::note_own_pause(std::chrono::milliseconds pause) {
  own_pause_ = pause;
  paused_until_ = Clock::now();
}

std::optional<Finding> FailureReport::conclude(Clock::time_point now) {
  if (!opened_ || is_concluded_) return std::nullopt;
  const auto waited = now - *opened_;
  bool is_known = waited >= options_.answer_timeout;
  if (first_loss_) is_known = is_known || now - *first_loss_ >= options_.loss_grace;
  if (!first_loss_ && alarm_) {
    // An error of a rank needs no answers, but it may come of another's death.
    const bool failed = !alarm_->stuck || !alarm_->stuck->error.empty();
    is_known = is_known || ((all_have_answered() || !alarm_->stuck) && (!failed || waited >= kCauseGrace));
  }
  if (!is_known) return std::nullopt;
  is_concluded_ = true;
  return finding();
}

bool FailureReport::all_have_answered() const {
  for (int rank = 0; rank < static_cast<int>(options_.hosts.size()); ++rank) {
    if (is_present(rank) && flights_.count(rank) == 0) return false;
  }
  return true;
}

int FailureReport::lowest_that_answered() const {
  for (const auto& [rank, entries] : flights_) {
    if (is_present(rank)) return rank;
  }
  return alarm_ ? alarm_->rank : 0;
}

Finding FailureReport::finding() const {
  if (alarm_ && !alarm_->stuck && losses_.empty()) {
    const std::string who = name_ranks({alarm_->rank}, options_.hosts);
    return {fmt::format("{}: {}", who, alarm_->message), alarm_->status, alarm_->rank, /*is_plain=*/true,
            /*is_loss=*/false};
  }
  // A rank that is gone explains an operation that failed or hangs, never the other way round.
  std::string message;
  for (const Loss loss : {Loss::kEnded, Loss::kUnreachable}) {
    const std::string text = loss_text(loss);
    if (!text.empty()) message += (message.empty() ? "" : "; ") + text;
  }
  const bool is_loss = !message.empty();
  if (own_pause_.count() > 0 && *opened_ - paused_until_ < kPauseMemory) {
    message = fmt::format("{} was stopped for {}, and the others have not waited for it", options_.holder,
                          format_duration(own_pause_));
    return {message, static_cast<int>(ExitStatus::kCollective), 0, /*is_plain=*/false, /*is_loss=*/false};
  }
  if (!is_loss) message = explain_stuck();
  const int status = alarm_ ? alarm_->status : static_cast<int>(ExitStatus::kCollective);
  return {message, status, lowest_that_answered(), /*is_plain=*/false, is_loss};
}

std::string FailureReport::loss_text(Loss loss) const {
  std::set<std::string> lost_hosts;
  std::vector<int> ranks;
  for (const auto& [rank, how] : losses_) {
    if (how == loss) lost_hosts.insert(options_.hosts[static_cast<std::size_t>(rank)]);
  }
  if (lost_hosts.empty()) return {};
  const bool only_elsewhere = lost_hosts.count(options_.holder_host) == 0;
  for (int rank = 0; rank < static_cast<int>(options_.hosts.size()); ++rank) {
    // A host that cannot be reached has all its ranks with it; their connections time out one after another.
    const bool is_cut_off = loss == Loss::kUnreachable && is_present(rank) && flights_.count(rank) == 0 &&
                            lost_hosts.count(options_.hosts[static_cast<std::size_t>(rank)]) != 0;
    const auto lost = losses_.find(rank);
    if (is_cut_off || (lost != losses_.end() && lost->second == loss)) ranks.push_back(rank);
  }
  const std::string who = name_ranks(ranks, options_.hosts);
  if (loss == Loss::kUnreachable && only_elsewhere) return lost_contact_text(options_.holder, who, options_.silence);
  return fmt::format("{} {} gone: {} ended without reporting an error", who, ranks.size() == 1 ? "is" : "are",
                     ranks.size() == 1 ? "its process" : "their processes");
}

std::string FailureReport::explain_stuck() const {
  // Whoever is alone in another operation may be the first to raise the alarm: what most entered is the measure.
  const bool has_failed = !alarm_->stuck->error.empty();
  const FlightEntry first = has_failed ? *alarm_->stuck : first_held_up(*alarm_->stuck, flights_);
  std::optional<FlightEntry> usual;
  if (!has_failed) usual = entered_by_most(first, flights_);
  const FlightEntry stuck = usual.value_or(first);
  const std::vector<int> absent = absent_ranks(stuck, flights_), odd = odd_ranks(stuck, flights_);
  const std::string diagnosis = diagnose(stuck, flights_);
  if (usual && absent.empty() && !odd.empty()) {
    return fmt::format("{} entered another collective: {}\n{}", name_ranks(odd, options_.hosts), alarm_->message,
                       diagnosis);
  }
  if (absent.empty() || has_failed) {
    return fmt::format("{}: {}\n{}", name_ranks({alarm_->rank}, options_.hosts), alarm_->message, diagnosis);
  }
  const bool answers = std::ranges::any_of(absent, [&](int rank) { return flights_.count(rank) != 0; });
  return fmt::format("{} {}: {}\n{}", name_ranks(absent, options_.hosts),
                     answers ? "never entered a collective" : "did not answer", alarm_->message, diagnosis);
}

std::string name_ranks(const std::vector<int>& ranks, const std::vector<std::string>& hosts) {
  std::vector<std::string> places;
  for (const int rank : ranks) {
    const auto index = static_cast<std::size_t>(rank);
    const std::string host = index < hosts.size() ? hosts[index] : "?";
    if (std::ranges::find(places, host) == places.end()) places.push_back(host);
  }
  return fmt::format("{} {} on {}", ranks.size() == 1 ? "rank" : "ranks", format_ranges(ranks), join(places, ", "));
}

std::string lost_contact_text(const std::string& a, const std::string& b, std::chrono::milliseconds silence) {
  return fmt::format(
      "{} and {} have lost contact: no answer for {}; a host is down, or the network between them is cut", a, b,
      format_duration(silence));
}

}  // namespace tessera
