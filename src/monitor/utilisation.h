// How much memory a run uses and how busy its devices are: read at the end of each step, on every rank.
//
//   auto meter = std::make_shared<UtilisationMeter>(usage_reader(world));
//   listeners.add(std::make_unique<UtilisationListener>(meter, ...));   // report/, on every rank
//   trainer.add_summary([&] { return meter->summary(world); });         // collective
//
// Nothing here waits for a GPU. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/log_record.h"
#include "tessera/world.h"

namespace tessera {

// One reading. On a GPU: torch's allocator, and NVML for the device; on a CPU: this process.
struct Usage {
  std::optional<double> allocated_bytes;  // by tensors; on a CPU: resident
  std::optional<double> reserved_bytes;   // by the caching allocator; a CPU has none
  std::optional<double> used_bytes;       // of the whole device, by NVML
  std::optional<double> busy_percent;     // of the GPU; on a CPU: 100 for one busy core
  double peak_bytes = 0;                  // the largest allocated_bytes so far, also between readings
};

// Of the readings that have a value.
struct UsageTotal {
  double count = 0, sum = 0, square = 0, peak = 0;
  void add(const std::optional<double>& value);
};

struct UsageTotals {
  UsageTotal allocated, reserved, used, busy;
  double peak_bytes = 0;  // Usage::peak_bytes
  void add(const Usage& usage);
};

using UsageReader = std::function<Usage()>;
// Reads this rank's device.
UsageReader usage_reader(const World& world);

class UtilisationMeter {
 public:
  explicit UtilisationMeter(UsageReader read, bool is_gpu) : read_(std::move(read)), is_gpu_(is_gpu) {}

  // The first reading only starts an interval, if readings cover one (a CPU's seconds).
  void begin();
  // Skipped if reading would take more than a hundredth of the time: the run comes first.
  void sample();
  const std::optional<Usage>& last() const { return last_; }

  // avg_mem_alloc_MB, avg_mem_reserved_MB, avg_mem_total_MB, avg_gpu_util_%, std_gpu_util_% and max_mem_alloc_MB; on a
  // CPU: avg_cpu_mem_MB, max_cpu_mem_MB, avg_cpu_util_%, std_cpu_util_%. Means over steps and ranks, the largest over
  // ranks; MB are 2^20 bytes. What was never read is left out. Collective.
  LogRecord summary(World& world) const;

  // This rank's part, and the summary from all ranks' parts.
  std::vector<double> sums() const;
  static LogRecord summary_of(const std::vector<std::vector<double>>& sums_of_ranks, bool is_gpu);

 private:
  UsageReader read_;
  bool is_gpu_;
  UsageTotals totals_;
  std::optional<Usage> last_;
  double begun_ = 0, spent_ = 0;  // seconds
};

// Reads what a rank uses at a fixed period, on a thread of its own, whatever the run is doing.
//
// A long run keeps as many readings as a short one: when there are too many, every second one is dropped and the period
// doubles.
struct UsageReadings : UsageTotals {  // of all
  double period_seconds = 0;
  std::vector<Usage> readings;  // the first one period after the start; of a long run, some
};

class UsageTimer {
 public:
  explicit UsageTimer(UsageReader read, double period_seconds = 0.5, std::size_t most_readings = 500);
  ~UsageTimer() { stop(); }
  UsageTimer(const UsageTimer&) = delete;
  UsageTimer& operator=(const UsageTimer&) = delete;

  void stop();                     // the thread ends, after a last reading
  UsageReadings readings() const;  // so far

 private:
  void run(const std::stop_token& stop);
  void keep(const Usage& usage);

  UsageReader read_;
  std::size_t most_;
  mutable std::mutex mutex_;
  UsageReadings kept_;
  std::jthread thread_;
};

}  // namespace tessera
