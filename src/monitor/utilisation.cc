#include "monitor/utilisation.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "comm/exchange.h"
#include "comm/gpu_support.h"
#include "core/host.h"
#include "core/quantity.h"
#include "monitor/nvml.h"
#include "monitor/process_usage.h"

namespace tessera {
namespace {

constexpr double kShareOfTime = 0.01;
constexpr std::size_t kNumbersOfSum = 3;
constexpr std::size_t kNumSums = 4;  // allocated, reserved, used, busy; then the peak

UsageReader gpu_reader(c10::DeviceIndex index) {
  const GpuSupport* gpus = gpu_support();
  const std::shared_ptr<NvmlGpu> gpu = gpus == nullptr ? nullptr : NvmlGpu::find(gpus->info(index).pci_address);
  at::empty({1}, at::device(at::Device(at::kCUDA, index)));  // the allocator knows a device only after its first tensor
  return [index, gpu] {
    Usage usage;
    const auto stats = at::accelerator::getDeviceStats(index);
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    usage.allocated_bytes = static_cast<double>(stats.allocated_bytes[kAll].current);
    usage.reserved_bytes = static_cast<double>(stats.reserved_bytes[kAll].current);
    usage.peak_bytes = static_cast<double>(stats.allocated_bytes[kAll].peak);
    if (!gpu) return usage;
    const GpuReading reading = gpu->read();
    if (reading.used_bytes) usage.used_bytes = static_cast<double>(*reading.used_bytes);
    usage.busy_percent = reading.busy_percent;
    return usage;
  };
}

// How busy the CPU was since the previous reading.
UsageReader cpu_reader() {
  return [before = std::optional<std::pair<double, double>>()]() mutable {
    const ProcessUsage process = read_process_usage();
    const double now = steady_seconds();
    Usage usage;
    if (process.resident_bytes > 0) usage.allocated_bytes = static_cast<double>(process.resident_bytes);
    usage.peak_bytes = static_cast<double>(process.peak_resident_bytes);
    if (before && now > before->first) {
      usage.busy_percent = 100 * (process.cpu_seconds - before->second) / (now - before->first);
    }
    before = {now, process.cpu_seconds};
    return usage;
  };
}

}  // namespace

UsageReader usage_reader(const World& world) {
  return world.device().is_cuda() ? gpu_reader(world.device().index()) : cpu_reader();
}

void UsageTotal::add(const std::optional<double>& value) {
  if (!value) return;
  count += 1;
  sum += *value;
  square += *value * *value;
  peak = std::max(peak, *value);
}

void UsageTotals::add(const Usage& usage) {
  allocated.add(usage.allocated_bytes);
  reserved.add(usage.reserved_bytes);
  used.add(usage.used_bytes);
  busy.add(usage.busy_percent);
  peak_bytes = std::max(peak_bytes, usage.peak_bytes);
}

void UtilisationMeter::begin() {
  read_();
  begun_ = steady_seconds();
}

void UtilisationMeter::sample() {
  const double now = steady_seconds();
  if (last_ && spent_ > kShareOfTime * (now - begun_)) return;
  last_ = read_();
  totals_.add(*last_);
  spent_ += steady_seconds() - now;
}

std::vector<double> UtilisationMeter::sums() const {
  std::vector<double> numbers;
  for (const UsageTotal& each : {totals_.allocated, totals_.reserved, totals_.used, totals_.busy}) {
    numbers.insert(numbers.end(), {each.count, each.sum, each.square});
  }
  numbers.push_back(totals_.peak_bytes);
  return numbers;
}

LogRecord UtilisationMeter::summary_of(const std::vector<std::vector<double>>& sums_of_ranks, bool is_gpu) {
  UsageTotal sums[kNumSums];
  double peak = 0;
  for (const std::vector<double>& of_rank : sums_of_ranks) {
    for (std::size_t i = 0; i < kNumSums; ++i) {
      sums[i].count += of_rank[kNumbersOfSum * i];
      sums[i].sum += of_rank[kNumbersOfSum * i + 1];
      sums[i].square += of_rank[kNumbersOfSum * i + 2];
    }
    peak = std::max(peak, of_rank.back());
  }
  const auto& [allocated, reserved, used, busy] = sums;
  LogRecord record;
  const auto set_mean = [&](const char* key, const UsageTotal& sum, double unit) {
    if (sum.count > 0) record.set(key, sum.sum / sum.count / unit);
  };
  set_mean(is_gpu ? "avg_mem_alloc_MB" : "avg_cpu_mem_MB", allocated, kBytesPerMb);
  set_mean("avg_mem_reserved_MB", reserved, kBytesPerMb);
  set_mean("avg_mem_total_MB", used, kBytesPerMb);
  set_mean(is_gpu ? "avg_gpu_util_%" : "avg_cpu_util_%", busy, 1);
  if (busy.count > 0) {
    const double mean = busy.sum / busy.count;
    record.set(is_gpu ? "std_gpu_util_%" : "std_cpu_util_%",
               std::sqrt(std::max(0.0, busy.square / busy.count - mean * mean)));
  }
  if (peak > 0) record.set(is_gpu ? "max_mem_alloc_MB" : "max_cpu_mem_MB", peak / kBytesPerMb);
  return record;
}

LogRecord UtilisationMeter::summary(World& world) const {
  return summary_of(gather_numbers(world, sums()), is_gpu_);
}

UsageTimer::UsageTimer(UsageReader read, double period_seconds, std::size_t most_readings)
    : read_(std::move(read)), most_(most_readings) {
  kept_.period_seconds = period_seconds;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void UsageTimer::run(const std::stop_token& stop) {
  auto next = std::chrono::steady_clock::now();
  while (true) {
    // The period changes on this thread only.
    next += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(kept_.period_seconds));
    if (!sleep_until(stop, next)) return;
    const Usage usage = read_();
    const std::lock_guard lock(mutex_);
    keep(usage);
  }
}

void UsageTimer::keep(const Usage& usage) {
  kept_.add(usage);
  kept_.readings.push_back(usage);
  if (kept_.readings.size() < most_) return;
  std::vector<Usage> half;
  for (std::size_t i = 1; i < kept_.readings.size(); i += 2) half.push_back(kept_.readings[i]);
  kept_.readings = std::move(half);
  kept_.period_seconds *= 2;
}

void UsageTimer::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  keep(read_());
}

UsageReadings UsageTimer::readings() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace tessera
