#include "record/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "record/run_memory.h"

namespace tessera {
namespace {

using Value = std::optional<double>;

Value first_of(std::initializer_list<Value> values) {
  for (const Value& value : values) {
    if (value) return value;
  }
  return std::nullopt;
}

Value logged_or_summed(const RunRecord& run, const std::string& name) {
  return first_of({run.last(name), run.summary.number(name)});
}

std::vector<double> of_ranks(const RunRecord& run, const std::string& number) {
  std::vector<double> values;
  for (const RankRecord& rank : run.ranks) {
    if (const Value value = rank.numbers.number(number)) values.push_back(*value);
  }
  return values;
}

Value largest_of_ranks(const RunRecord& run, const std::string& number) {
  const std::vector<double> values = of_ranks(run, number);
  if (values.empty()) return std::nullopt;
  return *std::max_element(values.begin(), values.end());
}

// Over those ranks that have it.
Value mean_of_ranks(const RunRecord& run, const std::string& number) {
  const std::vector<double> values = of_ranks(run, number);
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Value part_mean_ms(const RunRecord& run, const std::string& part) {
  double sum = 0;
  int num_ranks_with_it = 0;
  for (const RankRecord& rank : run.ranks) {
    for (const PartTime& each : rank.parts) {
      if (each.name != part) continue;
      sum += each.mean_ms;
      ++num_ranks_with_it;
    }
  }
  if (num_ranks_with_it == 0) return std::nullopt;
  return sum / num_ranks_with_it;
}

Value busy_mean_percent(const RunRecord& run) {
  return first_of({mean_of_ranks(run, "busy_mean_percent"), run.summary.number("avg_gpu_util_%"),
                   run.summary.number("avg_cpu_util_%")});
}

bool is_on_cpu(const RunRecord& run) {
  return run.text("device") == "cpu";
}

// The evaluation nearest to the end of an epoch, which ends at 0.98 or 1.0.
Value eval_loss_of_epoch(const RunRecord& run, int epoch) {
  Value loss;
  double distance = 0.25;
  for (const LogRecord& record : run.metrics) {
    const Value value = record.number("eval_loss"), at = record.number("epoch");
    if (!value || !at || std::abs(*at - epoch) > distance) continue;
    loss = value;
    distance = std::abs(*at - epoch);
  }
  return loss;
}

Metric logged(const std::string& key, const std::string& label, const std::string& unit, int digits, Better better,
              const std::string& name = "") {
  return {name.empty() ? key : name,
          label,
          unit,
          digits,
          better,
          [key](const RunRecord& run) { return logged_or_summed(run, key); },
          key};
}

Metric score(const std::string& name, const std::string& label) {
  const auto compute = [name](const RunRecord& run) {
    return first_of({run.summary.number(name), run.last("eval_" + name)});
  };
  return {name, label, "", 4, Better::kHigher, compute, label};
}

Metric largest(const std::string& number, const std::string& label, const std::string& missing = "") {
  return {number, label,          "MiB",
          0,      Better::kLower, [number](const RunRecord& run) { return largest_of_ranks(run, number); },
          missing};
}

// The mean over time and ranks; `summed`: its name in the summary of runs without ranks.
Metric mean(const std::string& number, const std::string& label, const std::string& summed,
            const std::string& missing = "") {
  const auto compute = [number, summed](const RunRecord& run) {
    return first_of({mean_of_ranks(run, number), run.summary.number(summed)});
  };
  return {number, label, "MiB", 0, Better::kLower, compute, missing};
}

Metric fact(const std::string& name, const std::string& label) {
  return {name, label, "", 0, Better::kUnknown, [name](const RunRecord& run) { return run.facts.number(name); }};
}

// Of the first GPU that the job used, in the head node's log; or of all processes of the job on the head node.
Metric of_log(MetricSource source, const std::string& name, const std::string& label, int digits,
              double (*formula)(const MemoryStatistics&)) {
  const auto statistics = [source](const RunRecord& run) -> const MemoryStatistics* {
    const RunMemory& memory = memory_of(run);
    if (source == MetricSource::kCpuLog) return memory.hosts.empty() ? nullptr : &memory.hosts.front().used_MB;
    return memory.gpus.empty() || memory.first_gpu().used_MiB.num_samples == 0 ? nullptr : &memory.first_gpu().used_MiB;
  };
  Metric metric{name, label, "MiB", digits, Better::kLower, [statistics, formula](const RunRecord& run) -> Value {
                  const MemoryStatistics* found = statistics(run);
                  if (found == nullptr) return std::nullopt;
                  return formula(*found);
                }};
  metric.source = source;
  if (name.ends_with("_mode_MB"))
    metric.text = [statistics](const RunRecord& run) { return modes_text(*statistics(run)); };
  return metric;
}

double peak_of(const MemoryStatistics& statistics) {
  return statistics.peak;
}

double average_of(const MemoryStatistics& statistics) {
  return statistics.average;
}

double first_mode_of(const MemoryStatistics& statistics) {
  return statistics.modes.empty() ? 0 : statistics.modes.front();
}

const std::string kNoNvml = "NVML figure of used GPU memory";

// Those that only tables, the page and --metric name.
std::vector<Metric> more_metrics() {
  Metric num_parameters = fact("num_parameters", "parameters");
  num_parameters.text = [](const RunRecord& run) {
    return grouped(static_cast<long long>(*run.facts.number("num_parameters")));
  };
  std::vector<Metric> more = {
      {"ranks", "ranks", "", 0, Better::kUnknown,
       [](const RunRecord& run) { return num_ranks(run) > 0 ? Value(num_ranks(run)) : std::nullopt; }},
      fact("num_layers", "layers"),
      fact("batch_size", "batch per rank"),
      fact("global_batch", "global batch"),
      fact("updates_per_epoch", "updates per epoch"),
      num_parameters,
      {"total_steps", "steps", "", 0, Better::kUnknown,
       [](const RunRecord& run) { return static_cast<double>(run.total_steps); }},
      {"steps_done", "steps done", "", 0, Better::kHigher,
       [](const RunRecord& run) { return static_cast<double>(steps_done(run)); }},
      {"elapsed", "time, of an unfinished run so far", "s", 2, Better::kLower,
       [](const RunRecord& run) {
         return first_of({runtime_seconds(run), recorded_seconds(run)});
       }},
      {"callback_samples_per_second", "training speed, mean of logs", "samples/s", 3, Better::kHigher,
       [](const RunRecord& run) { return run.summary.number("train/samples_per_second_mean"); },
       "train/samples_per_second_mean"},
      {"callback_allocated_MB", "GPU memory allocated, mean of steps", "MiB", 0, Better::kLower,
       [](const RunRecord& run) { return run.summary.number("avg_mem_alloc_MB"); }, "avg_mem_alloc_MB"},
      logged("train_steps_per_second", "steps per second", "steps/s", 3, Better::kHigher, "steps_per_second"),
      logged("Throughput/images_per_sec", "throughput", "img/s", 1, Better::kHigher, "images_per_second"),
      logged("Loss/train", "train loss of the last epoch", "", 3, Better::kLower, "epoch_loss"),
      logged("Accuracy/train", "train accuracy of the last epoch", "%", 2, Better::kHigher, "epoch_accuracy"),
      {"gpu_busy_mean_percent", "GPU busy, mean", "%", 1, Better::kHigher,
       [](const RunRecord& run) { return is_on_cpu(run) ? std::nullopt : busy_mean_percent(run); }, "GPU utilisation"},
      {"gpu_busy_peak_percent", "GPU busy, peak", "%", 1, Better::kHigher,
       [](const RunRecord& run) { return is_on_cpu(run) ? std::nullopt : largest_of_ranks(run, "busy_peak_percent"); },
       "peak of GPU utilisation"},
      {"peak_memory_MB", "memory, peak: allocated, on a CPU of the process", "MiB", 0, Better::kLower,
       [](const RunRecord& run) { return is_on_cpu(run) ? resident_peak_MB(run) : allocated_peak_MB(run); },
       "peak of memory"},
      mean("allocated_mean_MB", "GPU memory allocated, mean", "avg_mem_alloc_MB"),
      mean("resident_mean_MB", "process memory, mean", "avg_cpu_mem_MB"),
      of_log(MetricSource::kGpuLog, "gpu_log_peak_MB", "GPU memory log, peak", 0, peak_of),
      of_log(MetricSource::kGpuLog, "gpu_log_average_MB", "GPU memory log, average", 2, average_of),
      of_log(MetricSource::kGpuLog, "gpu_log_mode_MB", "GPU memory log, most frequent", 0, first_mode_of),
      of_log(MetricSource::kCpuLog, "cpu_log_peak_MB", "CPU memory log, peak", 0, peak_of),
      of_log(MetricSource::kCpuLog, "cpu_log_average_MB", "CPU memory log, average", 2, average_of),
      of_log(MetricSource::kCpuLog, "cpu_log_mode_MB", "CPU memory log, most frequent", 0, first_mode_of),
  };
  for (const int epoch : {1, 2, 3, 4, 5}) {
    more.push_back({fmt::format("eval_loss_epoch_{}", epoch), fmt::format("eval loss of epoch {}", epoch), "", 4,
                    Better::kLower, [epoch](const RunRecord& run) { return eval_loss_of_epoch(run, epoch); },
                    fmt::format("evaluation at the end of epoch {}", epoch)});
  }
  return more;
}

const std::map<std::string, Metric>& metrics_by_name() {
  static const std::map<std::string, Metric> all = [] {
    std::map<std::string, Metric> by_name;
    for (const Metric& metric : main_metrics()) by_name.emplace(metric.name, metric);
    for (const Metric& metric : more_metrics()) by_name.emplace(metric.name, metric);
    return by_name;
  }();
  return all;
}

}  // namespace

const std::vector<Metric>& main_metrics() {
  static const std::vector<Metric> all = {
      {"samples_per_second", "training speed", "samples/s", 3, Better::kHigher, samples_per_second, "samples/s"},
      {"runtime", "runtime", "s", 2, Better::kLower, runtime_seconds},
      {"step_mean_ms", "step time", "ms", 2, Better::kLower,
       [](const RunRecord& run) { return mean_of_ranks(run, "step_mean_ms"); }},
      {"train_loss", "train loss", "", 4, Better::kLower, train_loss},
      logged("eval_loss", "eval loss", "", 4, Better::kLower),
      score("exact_match", "exact match"),
      score("f1", "F1"),
      logged("Accuracy/val", "accuracy (val)", "%", 2, Better::kHigher),
      logged("eval_samples_per_second", "evaluation speed", "samples/s", 3, Better::kHigher),
      {"allocated_peak_MB", "GPU memory allocated, peak", "MiB", 0, Better::kLower, allocated_peak_MB},
      largest("reserved_peak_MB", "GPU memory reserved, peak"),
      largest("used_peak_MB", "GPU memory used, peak", kNoNvml),
      mean("used_mean_MB", "GPU memory used, mean", "avg_mem_total_MB", kNoNvml),
      {"busy_mean_percent", "busy, mean", "%", 1, Better::kHigher, busy_mean_percent},
      {"resident_peak_MB", "process memory, peak", "MiB", 0, Better::kLower, resident_peak_MB},
  };
  return all;
}

std::vector<Metric> part_metrics(const std::vector<const RunRecord*>& runs) {
  std::vector<Metric> parts;
  std::set<std::string> seen;
  for (const RunRecord* run : runs) {
    for (const RankRecord& rank : run->ranks) {
      for (const PartTime& part : rank.parts) {
        if (!seen.insert(part.name).second) continue;
        std::string name = part.name + "_ms";
        std::replace(name.begin(), name.end(), ' ', '_');
        parts.push_back({name, part.name, "ms", 2, Better::kLower,
                         [part = part.name](const RunRecord& each) { return part_mean_ms(each, part); }});
      }
    }
  }
  return parts;
}

std::vector<Metric> shown_metrics(const std::vector<const RunRecord*>& runs) {
  std::vector<Metric> all = main_metrics();
  std::ranges::move(part_metrics(runs), std::back_inserter(all));
  return all;
}

const Metric* find_metric(const std::string& name) {
  const auto found = metrics_by_name().find(name);
  return found == metrics_by_name().end() ? nullptr : &found->second;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const auto& [name, metric] : metrics_by_name()) names.push_back(name);
  return names;
}

std::string reason_without(const Metric& metric, const RunRecord& run, const std::string& who) {
  if (metric.source == MetricSource::kRecord) {
    return fmt::format("{} recorded no {}", who, metric.missing.empty() ? metric.name : metric.missing);
  }
  const bool is_gpu = metric.source == MetricSource::kGpuLog;
  if ((is_gpu ? run.gpu_logs : run.cpu_logs).empty()) {
    return fmt::format("{} has no {} memory log", who, is_gpu ? "GPU" : "CPU");
  }
  const RunMemory& memory = memory_of(run);
  if (is_gpu && !memory.gpus.empty()) return "the driver does not say how much GPU memory is used";
  std::vector<std::string> problems;
  for (const MemoryTrouble& trouble : memory.troubles) problems.push_back(trouble.line);
  return join(problems, "; ");
}

Value samples_per_second(const RunRecord& run) {
  return first_of({logged_or_summed(run, "train_samples_per_second"), run.last("train/samples_per_second")});
}

Value runtime_seconds(const RunRecord& run) {
  return logged_or_summed(run, "train_runtime");
}

Value train_loss(const RunRecord& run) {
  return first_of({logged_or_summed(run, "train_loss"), run.last("Loss/train"), run.last("loss")});
}

Value allocated_peak_MB(const RunRecord& run) {
  return first_of({largest_of_ranks(run, "allocated_peak_MB"), run.summary.number("max_mem_alloc_MB")});
}

Value resident_peak_MB(const RunRecord& run) {
  return first_of({largest_of_ranks(run, "resident_peak_MB"), run.summary.number("max_cpu_mem_MB")});
}

Value value_of(const RunRecord& run, const std::string& metric) {
  const Metric* found = find_metric(metric);
  if (found == nullptr) throw Error("no metric " + metric);  // a mistake in the program: names come from the registry
  return found->compute(run);
}

}  // namespace tessera
