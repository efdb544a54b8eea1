#include "monitor/usage_timer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.h"

namespace tessera {

UsageTimer::UsageTimer(UsageReader read, double period_seconds, std::size_t most_readings)
    : read_(std::move(read)), most_(most_readings) {
  kept_.period_seconds = period_seconds;
  thread_ = std::thread([this] { run(); });
}

void UsageTimer::run() {
  auto next = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    next += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(kept_.period_seconds));
    if (changed_.wait_until(lock, next, [this] { return ends_; })) return;
    lock.unlock();
    const Usage usage = read_();
    lock.lock();
    add(usage);
    cpu_seconds_ = thread_cpu_seconds();
  }
}

void UsageTotal::add(const std::optional<double>& value) {
  if (!value) return;
  count += 1;
  sum += *value;
  peak = std::max(peak, *value);
}

void UsageTimer::add(const Usage& usage) {
  kept_.allocated.add(usage.allocated_bytes);
  kept_.reserved.add(usage.reserved_bytes);
  kept_.used.add(usage.used_bytes);
  kept_.busy.add(usage.busy_percent);
  kept_.peak_bytes = std::max(kept_.peak_bytes, usage.peak_bytes);
  kept_.readings.push_back(usage);
  if (kept_.readings.size() < most_) return;
  std::vector<Usage> half;
  for (std::size_t i = 1; i < kept_.readings.size(); i += 2) half.push_back(kept_.readings[i]);
  kept_.readings = std::move(half);
  kept_.period_seconds *= 2;
}

void UsageTimer::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  add(read_());
}

UsageReadings UsageTimer::readings() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

double UsageTimer::cpu_seconds() const {
  const std::lock_guard lock(mutex_);
  return cpu_seconds_;
}

}  // namespace tessera
