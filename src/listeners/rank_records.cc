#include "listeners/rank_records.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/exchange.h"
#include "comm/gpu_support.h"
#include "core/quantity.h"

namespace tessera {
namespace {

constexpr double kMsPerSecond = 1000;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kNumSeries = 4;

double capacity_of(const World& world) {
  const GpuSupport* gpus = world.device().is_cuda() ? gpu_support() : nullptr;
  return gpus == nullptr ? 0 : static_cast<double>(gpus->info(world.device().index()).memory_bytes) / kBytesPerMb;
}

constexpr std::size_t kNumTotals = 3 * kNumSeries;  // count, sum and peak of each series

// Period, peak and capacity, the totals, then the readings one after another; every rank sends as many, the last ones
// none.
std::vector<double> numbers_of(const World& world, const UsageReadings& usage, std::size_t num_readings) {
  std::vector<double> numbers = {usage.period_seconds, usage.peak_bytes / kBytesPerMb, capacity_of(world)};
  for (const UsageTotal* total : {&usage.allocated, &usage.reserved, &usage.used, &usage.busy}) {
    numbers.insert(numbers.end(), {total->count, total->sum, total->peak});
  }
  for (const Usage& each : usage.readings) {
    numbers.push_back(each.allocated_bytes.value_or(kNone) / kBytesPerMb);
    numbers.push_back(each.reserved_bytes.value_or(kNone) / kBytesPerMb);
    numbers.push_back(each.used_bytes.value_or(kNone) / kBytesPerMb);
    numbers.push_back(each.busy_percent.value_or(kNone));
  }
  numbers.resize(3 + kNumTotals + kNumSeries * num_readings, kNone);
  return numbers;
}

// Without the readings that no rank has at the end.
void trim(std::vector<double>& values) {
  while (!values.empty() && std::isnan(values.back())) values.pop_back();
}

void add_usage(RankRecord& rank, const std::vector<double>& numbers, bool is_gpu) {
  UsageSeries& series = rank.series;
  series.period_seconds = numbers[0];
  for (std::size_t i = 3 + kNumTotals; i + kNumSeries <= numbers.size(); i += kNumSeries) {
    (is_gpu ? series.allocated_MB : series.resident_MB).push_back(numbers[i]);
    series.reserved_MB.push_back(numbers[i + 1]);
    series.used_MB.push_back(numbers[i + 2]);
    series.busy_percent.push_back(numbers[i + 3]);
  }
  for (std::vector<double>* each :
       {&series.allocated_MB, &series.reserved_MB, &series.used_MB, &series.resident_MB, &series.busy_percent}) {
    trim(*each);
  }
  const double* total = &numbers[3];  // count, sum and peak
  for (const std::string name : {is_gpu ? "allocated" : "resident", "reserved", "used", "busy"}) {
    const bool is_percent = name == "busy";
    const char* unit = is_percent ? "percent" : "MB";
    const double unit_size = is_percent ? 1 : kBytesPerMb;
    if (total[0] > 0) {
      rank.numbers.set(name + "_mean_" + unit, total[1] / total[0] / unit_size);
      rank.numbers.set(name + "_peak_" + unit, total[2] / unit_size);
    }
    total += 3;
  }
  // What the allocator or the kernel counts itself: also between readings.
  if (numbers[1] > 0) rank.numbers.set(is_gpu ? "allocated_peak_MB" : "resident_peak_MB", numbers[1]);
  if (numbers[2] > 0) rank.numbers.set("capacity_MB", numbers[2]);
}

void add_times(RankRecord& rank, const StepTimes& times) {
  if (times.num_steps == 0) return;
  rank.numbers.set("steps", times.num_steps);
  rank.numbers.set("step_mean_ms", kMsPerSecond * times.step_mean);
  rank.numbers.set("step_std_ms", kMsPerSecond * times.step_deviation);
  for (std::size_t i = 0; i < kNumStepParts; ++i) {
    rank.parts.push_back({step_part_names()[i], kMsPerSecond * times.mean[i], kMsPerSecond * times.deviation[i]});
  }
}

}  // namespace

std::vector<RankRecord> gather_rank_records(World& world, const StepTimes& times, const UsageReadings& usage,
                                            const std::vector<std::string>& devices) {
  double most = 0;
  for (const auto& count : gather_numbers(world, {static_cast<double>(usage.readings.size())})) {
    most = std::max(most, count[0]);
  }
  const auto times_of_rank = gather_numbers(world, times.numbers());
  const auto usage_of_rank = gather_numbers(world, numbers_of(world, usage, static_cast<std::size_t>(most)));
  std::vector<RankRecord> ranks;
  for (std::size_t i = 0; i < times_of_rank.size(); ++i) {
    RankRecord& rank = ranks.emplace_back();
    rank.rank = static_cast<int>(i);
    rank.host = world.hosts().at(i);
    rank.device = devices.at(i);
    add_usage(rank, usage_of_rank[i], world.device().is_cuda());
    add_times(rank, StepTimes::of(times_of_rank[i]));
  }
  return ranks;
}

// Under the names that W&B's own agent uses for such readings.
void UtilisationListener::on_log(const RunMoment& at, const LogRecord&) {
  const std::optional<Usage>& usage = meter_->last();
  if (reports_ == nullptr || !usage || at.step == last_step_) return;
  last_step_ = at.step;
  LogRecord readings;
  if (device_ == "cpu") {
    if (usage->allocated_bytes) readings.set("proc.memory.rssMB", *usage->allocated_bytes / kBytesPerMb);
    if (usage->busy_percent) readings.set("proc.cpu", *usage->busy_percent);
  } else {
    if (usage->used_bytes) readings.set(device_ + ".memoryAllocatedBytes", *usage->used_bytes);
    if (usage->busy_percent) readings.set(device_ + ".gpu", *usage->busy_percent);
    if (usage->allocated_bytes) readings.set(device_ + ".tensorBytes", *usage->allocated_bytes);
  }
  reports_->on_system_metrics(at, readings);
}

}  // namespace tessera
