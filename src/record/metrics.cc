#include "record/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
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
  return *std::ranges::max_element(values);
}

Value mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Over those ranks that have it.
Value mean_of_ranks(const RunRecord& run, const std::string& number) {
  return mean_of(of_ranks(run, number));
}

Value part_mean_ms(const RunRecord& run, const std::string& part) {
  std::vector<double> values;
  for (const RankRecord& rank : run.ranks) {
    for (const PartTime& each : rank.parts) {
      if (each.name == part) values.push_back(each.mean_ms);
    }
  }
  return mean_of(values);
}

Value busy_mean_percent(const RunRecord& run) {
  return first_of({mean_of_ranks(run, "busy_mean_percent"), run.summary.number("avg_gpu_util_%"),
                   run.summary.number("avg_cpu_util_%")});
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

// Formulas of one name each.
using Formula = std::function<Value(const RunRecord&)>;

Formula logged(const std::string& key) {
  return [key](const RunRecord& run) { return logged_or_summed(run, key); };
}

Formula summed(const std::string& key) {
  return [key](const RunRecord& run) { return run.summary.number(key); };
}

Formula score(const std::string& name) {
  return [name](const RunRecord& run) { return first_of({run.summary.number(name), run.last("eval_" + name)}); };
}

Formula largest(const std::string& number) {
  return [number](const RunRecord& run) { return largest_of_ranks(run, number); };
}

// Over time and ranks; `in_summary`: its name in the summary of runs without ranks.
Formula mean(const std::string& number, const std::string& in_summary) {
  return [number, in_summary](const RunRecord& run) {
    return first_of({mean_of_ranks(run, number), run.summary.number(in_summary)});
  };
}

Formula fact(const std::string& name) {
  return [name](const RunRecord& run) { return run.facts.number(name); };
}

Formula on_gpu(const Formula& formula) {
  return [formula](const RunRecord& run) { return run.text("device") == "cpu" ? std::nullopt : formula(run); };
}

// Of the first GPU that the job used, in the head node's log; or of all processes of the job on the head node.
const MemoryStatistics* statistics_of(const RunRecord& run, MetricSource source) {
  const RunMemory& memory = memory_of(run);
  if (source == MetricSource::kCpuLog) return memory.hosts.empty() ? nullptr : &memory.hosts.front().used_MB;
  return memory.gpus.empty() || memory.first_gpu().used_MiB.num_samples == 0 ? nullptr : &memory.first_gpu().used_MiB;
}

// Peak, average and mode in one log.
void add_metrics_of_log(MetricSource source, const std::string& kind, std::vector<Metric>& all) {
  const auto add = [&](const std::string& name, const std::string& label, int digits, const auto& formula) {
    const auto compute = [source, formula](const RunRecord& run) -> Value {
      const MemoryStatistics* statistics = statistics_of(run, source);
      return statistics == nullptr ? std::nullopt : Value(formula(*statistics));
    };
    all.push_back({lower_case(kind) + "_log_" + name + "_MB", kind + " memory log, " + label, "MiB", digits,
                   Better::kLower, compute, "", source});
  };
  add("peak", "peak", 0, [](const MemoryStatistics& log) { return log.peak; });
  add("average", "average", 2, [](const MemoryStatistics& log) { return log.average; });
  add("mode", "most frequent", 0,
      [](const MemoryStatistics& log) { return log.modes.empty() ? 0 : log.modes.front(); });
  all.back().text = [source](const RunRecord& run) { return modes_text(*statistics_of(run, source)); };
}

const std::string kNoNvml = "NVML figure of used GPU memory";

// Those that only tables, the page and --metric name.
std::vector<Metric> more_metrics() {
  using enum Better;
  std::vector<Metric> more = {
      {"ranks", "ranks", "", 0, kUnknown,
       [](const RunRecord& run) { return num_ranks(run) > 0 ? Value(num_ranks(run)) : std::nullopt; }},
      {"num_layers", "layers", "", 0, kUnknown, fact("num_layers")},
      {"batch_size", "batch per rank", "", 0, kUnknown, fact("batch_size")},
      {"global_batch", "global batch", "", 0, kUnknown, fact("global_batch")},
      {"updates_per_epoch", "updates per epoch", "", 0, kUnknown, fact("updates_per_epoch")},
      {.name = "num_parameters",
       .label = "parameters",
       .unit = "",
       .digits = 0,
       .better = kUnknown,
       .compute = fact("num_parameters"),
       .text =
           [](const RunRecord& run) { return grouped(static_cast<long long>(*run.facts.number("num_parameters"))); }},
      {"total_steps", "steps", "", 0, kUnknown,
       [](const RunRecord& run) { return static_cast<double>(run.total_steps); }},
      {"steps_done", "steps done", "", 0, kHigher,
       [](const RunRecord& run) { return static_cast<double>(steps_done(run)); }},
      {"elapsed", "time, of an unfinished run so far", "s", 2, kLower,
       [](const RunRecord& run) {
         return first_of({runtime_seconds(run), recorded_seconds(run)});
       }},
      {"callback_samples_per_second", "training speed, mean of logs", "samples/s", 3, kHigher,
       summed("train/samples_per_second_mean"), "train/samples_per_second_mean"},
      {"callback_allocated_MB", "GPU memory allocated, mean of steps", "MiB", 0, kLower, summed("avg_mem_alloc_MB"),
       "avg_mem_alloc_MB"},
      {"steps_per_second", "steps per second", "steps/s", 3, kHigher, logged("train_steps_per_second"),
       "train_steps_per_second"},
      {"images_per_second", "throughput", "img/s", 1, kHigher, logged("Throughput/images_per_sec"),
       "Throughput/images_per_sec"},
      {"epoch_loss", "train loss of the last epoch", "", 3, kLower, logged("Loss/train"), "Loss/train"},
      {"epoch_accuracy", "train accuracy of the last epoch", "%", 2, kHigher, logged("Accuracy/train"),
       "Accuracy/train"},
      {"gpu_busy_mean_percent", "GPU busy, mean", "%", 1, kHigher, on_gpu(busy_mean_percent), "GPU utilisation"},
      {"gpu_busy_peak_percent", "GPU busy, peak", "%", 1, kHigher, on_gpu(largest("busy_peak_percent")),
       "peak of GPU utilisation"},
      {"peak_memory_MB", "memory, peak: allocated, on a CPU of the process", "MiB", 0, kLower,
       [](const RunRecord& run) {
         return run.text("device") == "cpu" ? resident_peak_MB(run) : allocated_peak_MB(run);
       },
       "peak of memory"},
      {"allocated_mean_MB", "GPU memory allocated, mean", "MiB", 0, kLower,
       mean("allocated_mean_MB", "avg_mem_alloc_MB")},
      {"resident_mean_MB", "process memory, mean", "MiB", 0, kLower, mean("resident_mean_MB", "avg_cpu_mem_MB")},
  };
  add_metrics_of_log(MetricSource::kGpuLog, "GPU", more);
  add_metrics_of_log(MetricSource::kCpuLog, "CPU", more);
  for (const int epoch : {1, 2, 3, 4, 5}) {
    more.push_back({fmt::format("eval_loss_epoch_{}", epoch), fmt::format("eval loss of epoch {}", epoch), "", 4,
                    kLower, [epoch](const RunRecord& run) { return eval_loss_of_epoch(run, epoch); },
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
  using enum Better;
  static const std::vector<Metric> all = {
      {"samples_per_second", "training speed", "samples/s", 3, kHigher, samples_per_second, "samples/s"},
      {"runtime", "runtime", "s", 2, kLower, runtime_seconds},
      {"step_mean_ms", "step time", "ms", 2, kLower,
       [](const RunRecord& run) { return mean_of_ranks(run, "step_mean_ms"); }},
      {"train_loss", "train loss", "", 4, kLower, train_loss},
      {"eval_loss", "eval loss", "", 4, kLower, logged("eval_loss")},
      {"exact_match", "exact match", "", 4, kHigher, score("exact_match"), "exact match"},
      {"f1", "F1", "", 4, kHigher, score("f1"), "F1"},
      {"Accuracy/val", "accuracy (val)", "%", 2, kHigher, logged("Accuracy/val")},
      {"eval_samples_per_second", "evaluation speed", "samples/s", 3, kHigher, logged("eval_samples_per_second")},
      {"allocated_peak_MB", "GPU memory allocated, peak", "MiB", 0, kLower, allocated_peak_MB},
      {"reserved_peak_MB", "GPU memory reserved, peak", "MiB", 0, kLower, largest("reserved_peak_MB")},
      {"used_peak_MB", "GPU memory used, peak", "MiB", 0, kLower, largest("used_peak_MB"), kNoNvml},
      {"used_mean_MB", "GPU memory used, mean", "MiB", 0, kLower, mean("used_mean_MB", "avg_mem_total_MB"), kNoNvml},
      {"busy_mean_percent", "busy, mean", "%", 1, kHigher, busy_mean_percent},
      {"resident_peak_MB", "process memory, peak", "MiB", 0, kLower, resident_peak_MB},
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
        std::ranges::replace(name, ' ', '_');
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
  return texts_of(metrics_by_name(), [](const auto& each) { return each.first; });
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
  return join(texts_of(memory.troubles, &MemoryTrouble::line), "; ");
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
