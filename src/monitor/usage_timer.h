// Reads what a rank uses at a fixed period, on a thread of its own, whatever the run is doing.
//
// A long run keeps as many readings as a short one: when there are too many, every second one is dropped and the period
// doubles.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "monitor/utilisation.h"

namespace tessera {

struct UsageTotal {
  double count = 0, sum = 0, peak = 0;
  void add(const std::optional<double>& value);
};

struct UsageReadings {
  double period_seconds = 0;
  std::vector<Usage> readings;                 // the first one period after the start; of a long run, some
  UsageTotal allocated, reserved, used, busy;  // of all
  double peak_bytes = 0;                       // Usage::peak_bytes
};

class UsageTimer {
 public:
  explicit UsageTimer(UsageReader read, double period_seconds = 0.5, std::size_t most_readings = 500);
  ~UsageTimer() { stop(); }
  UsageTimer(const UsageTimer&) = delete;
  UsageTimer& operator=(const UsageTimer&) = delete;

  void stop();                     // the thread ends, after a last reading
  UsageReadings readings() const;  // so far
  double cpu_seconds() const;      // that the thread has used

 private:
  void run();
  void add(const Usage& usage);

  UsageReader read_;
  std::size_t most_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  UsageReadings kept_;
  double cpu_seconds_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tessera
