#include "comm/watchdog.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/failure.h"
#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "core/quantity.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLookEvery{100};
const std::string kAlarmKey = "tessera/alarm";

std::string flight_key(int rank) {
  return fmt::format("tessera/flight/{}", rank);
}

std::vector<std::uint8_t> to_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}
std::string to_text(const std::vector<std::uint8_t>& bytes) {
  std::string text(bytes.size(), ' ');
  std::copy(bytes.begin(), bytes.end(), text.begin());
  return text;
}

}  // namespace

std::string Watchdog::Alarm::to_text() const {
  Json json = {{"rank", rank}, {"status", status}, {"message", message}};
  if (stuck) json["stuck"] = stuck->to_json();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Watchdog::Alarm Watchdog::Alarm::from_text(const std::string& text) {
  const Json json = parse_json(text, "alarm");
  Alarm alarm{json.at("rank"), json.at("status"), json.at("message"), std::nullopt};
  if (json.contains("stuck")) alarm.stuck = FlightEntry::from_json(json.at("stuck"));
  return alarm;
}

Watchdog::Watchdog(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<FlightRecorder> recorder,
                   WatchdogOptions options)
    : store_(std::move(store)), recorder_(std::move(recorder)), options_(std::move(options)) {
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLookEvery, [this] { return stopping_ || ended_; })) {
    check_own_operations();
    if (!ended_) check_alarm_of_others();
  }
}

void Watchdog::publish_last_words() {
  std::lock_guard lock(mutex_);
  store_->set(flight_key(options_.rank), to_bytes(recorder_->dump()));
}

void Watchdog::check_own_operations() {
  recorder_->poll();
  if (const auto failed = recorder_->first_failed()) {
    return respond({options_.rank, static_cast<int>(ExitStatus::kCollective), failed->error, failed});
  }
  if (const auto stuck = recorder_->overdue(Clock::now() - options_.comm_timeout)) {
    respond({options_.rank, static_cast<int>(ExitStatus::kCollective),
             fmt::format("a collective took longer than {} (--comm_timeout)", format_duration(options_.comm_timeout)),
             stuck});
  }
}

void Watchdog::check_alarm_of_others() {
  try {
    const bool is_raised = store_->check({kAlarmKey});
    store_lost_since_ = {};
    if (is_raised) respond(Alarm::from_text(to_text(store_->get(kAlarmKey))));
  } catch (const std::exception& error) {
    // The process that holds the store is gone. Usually the launcher then ends us too; if it does not, we exit
    // ourselves.
    if (store_lost_since_ == steady_clock::time_point{}) store_lost_since_ = steady_clock::now();
    if (steady_clock::now() - store_lost_since_ < options_.answer_timeout || ended_) return;
    ended_ = true;
    options_.end(fmt::format("the run's store is gone: the launcher or rank 0 exited ({})", message_of(error)),
                 static_cast<int>(ExitStatus::kCollective), /*is_consequence=*/true, /*speaks=*/true);
  }
}

void Watchdog::raise(const std::string& message, int status) {
  std::lock_guard lock(mutex_);
  if (ended_) return;
  respond({options_.rank, status, message, recorder_->first_failed()});
}

// Called with the mutex held.
void Watchdog::respond(const Alarm& own) {
  ended_ = true;
  Alarm alarm = own;
  std::map<int, std::vector<FlightEntry>> entries_of_rank{{options_.rank, recorder_->entries()}};
  try {
    alarm = publish(own);
    if (alarm.stuck) entries_of_rank = collect();
  } catch (const std::exception& error) {
    log_debug("the store does not answer: {}", message_of(error));
  }
  const auto host_of = [&](int rank) {
    return static_cast<std::size_t>(rank) < options_.hosts.size() ? options_.hosts[static_cast<std::size_t>(rank)]
                                                                  : "?";
  };
  std::string message = fmt::format("rank {} on {}: {}", alarm.rank, host_of(alarm.rank), alarm.message);
  if (alarm.stuck) message += fmt::format("\n{}", diagnose(*alarm.stuck, entries_of_rank));
  const bool is_own = alarm.rank == options_.rank;
  // The rank that failed reports a plain failure; the lowest rank that still can reports a diagnosis.
  const bool speaks = alarm.stuck ? entries_of_rank.begin()->first == options_.rank : is_own;
  options_.end(message, alarm.status, /*is_consequence=*/!speaks, speaks);
}

// The first alarm in the store counts for all: if two ranks time out together, all report the same one.
Watchdog::Alarm Watchdog::publish(const Alarm& alarm) {
  store_->set(flight_key(options_.rank), to_bytes(recorder_->dump()));
  if (alarm.rank != options_.rank) return alarm;
  return Alarm::from_text(to_text(store_->compareSet(kAlarmKey, {}, to_bytes(alarm.to_text()))));
}

std::map<int, std::vector<FlightEntry>> Watchdog::collect() {
  std::map<int, std::vector<FlightEntry>> entries_of_rank;
  const auto deadline = steady_clock::now() + options_.answer_timeout;
  while (true) {
    for (int rank = 0; rank < options_.world_size; ++rank) {
      if (entries_of_rank.count(rank) != 0 || !store_->check({flight_key(rank)})) continue;
      entries_of_rank[rank] = FlightRecorder::parse_dump(to_text(store_->get(flight_key(rank))));
    }
    if (static_cast<int>(entries_of_rank.size()) == options_.world_size || steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(milliseconds(50));
  }
  return entries_of_rank;
}

}  // namespace tessera
