#include "comm/watchdog.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/quantity.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{100};
// A look that comes this late was kept back by no busy processor: the process was stopped.
constexpr milliseconds kLatePause{1000};
// A finding may be late because the machine is busy, while whoever collects still answers.
constexpr milliseconds kSilent{2000}, kLate{1500};

}  // namespace

Watchdog::Watchdog(std::shared_ptr<WatchLine> line, std::shared_ptr<FlightRecorder> recorder, WatchdogOptions options)
    : line_(std::move(line)), recorder_(std::move(recorder)), options_(std::move(options)) {
  thread_ = std::thread([this] { watch(); });
  poller_ = std::thread([this] { poll(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  poller_.join();
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto before = Clock::now();
    if (wake_.wait_for(lock, kLookEvery, [this] { return stopping_ || ended_; })) return;
    const auto now = Clock::now();
    forgive(now - before);
    look(now);
  }
}

void Watchdog::poll() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLookEvery, [this] { return stopping_ || ended_; })) {
    lock.unlock();
    recorder_->poll();
    lock.lock();
  }
}

// Called with the mutex held, as all below. A job that was suspended as a whole (scontrol suspend) goes on when it is
// continued: what this rank could not do while it stood still is not held against anybody.
void Watchdog::forgive(Clock::duration waited) {
  if (waited < kLatePause) return;
  recorder_->forgive(waited);
  sounded_at_ += waited;
}

void Watchdog::look(Clock::time_point now) {
  if (!sounded_) {
    if (const auto trouble = own_trouble(now)) sound(*trouble);
  }
  const WatchLine::News news = line_->news();
  if (news.finding) {
    const Finding& finding = *news.finding;
    const bool speaks = finding.speaker == options_.rank;
    return end({.message = finding.message,
                .status = finding.status,
                .speaks = speaks,
                .is_own_failure = speaks && finding.is_plain,
                .is_consequence = !speaks || finding.is_loss});
  }
  if (!news.lost.empty() && sounded_ && !sounded_->stuck) return end_by_own_words();
  if (!news.lost.empty()) {
    return end({.message = news.lost,
                .status = static_cast<int>(ExitStatus::kCollective),
                .speaks = true,
                .is_consequence = true});
  }
  if (news.silence > options_.comm_timeout) return end_unheard(options_.comm_timeout);
  if (news.is_inquiry && !has_published_) {
    has_published_ = true;
    line_->publish(recorder_->dump());
  }
  if (!sounded_ || now - sounded_at_ <= options_.finding_timeout) return;
  if (news.silence < kSilent && now - sounded_at_ <= options_.finding_timeout + kLate) return;
  if (sounded_->stuck) return end_unheard(options_.finding_timeout);
  end_by_own_words();
}

std::optional<Alarm> Watchdog::own_trouble(Clock::time_point now) const {
  constexpr int kStatus = static_cast<int>(ExitStatus::kCollective);
  if (const auto failed = recorder_->first_failed()) return Alarm{options_.rank, kStatus, failed->error, failed};
  const auto stuck = recorder_->overdue(options_.comm_timeout, now);
  if (!stuck) return std::nullopt;
  // Only the start has a limit of its own.
  if (stuck->limit > milliseconds(0)) {
    return Alarm{
        options_.rank, static_cast<int>(ExitStatus::kRendezvous),
        fmt::format("{} took longer than {} (--start_timeout)", stuck->operation, format_duration(stuck->limit)),
        stuck};
  }
  return Alarm{options_.rank, kStatus,
               fmt::format("a collective took longer than {} (--comm_timeout)", format_duration(options_.comm_timeout)),
               stuck};
}

void Watchdog::sound(const Alarm& alarm) {
  sounded_ = alarm;
  sounded_at_ = Clock::now();
  line_->raise(alarm);
}

void Watchdog::end_unheard(milliseconds silence) {
  std::string message = fmt::format("{} has not answered for {}: it is stopped, or its host hangs", line_->holder(),
                                    format_duration(silence));
  if (sounded_) message += "; " + sounded_->message;
  if (sounded_ && sounded_->stuck) message += fmt::format(" in {}", sounded_->stuck->name());
  const int status = sounded_ ? sounded_->status : static_cast<int>(ExitStatus::kCollective);
  end({.message = message, .status = status, .speaks = true});
}

void Watchdog::end_by_own_words() {
  end({.message = sounded_->message, .status = sounded_->status, .speaks = true, .is_own_failure = true});
}

void Watchdog::end(const Ending& ending) {
  ended_ = true;
  options_.end(ending);
  has_ended_.notify_all();
}

void Watchdog::raise(const std::string& message, int status) {
  std::unique_lock lock(mutex_);
  if (!sounded_) sound({options_.rank, status, message, recorder_->first_failed()});
  has_ended_.wait(lock, [this] { return ended_ || stopping_; });
}

}  // namespace tessera
