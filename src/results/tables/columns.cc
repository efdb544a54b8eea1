#include "results/tables/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "record/metrics.h"
#include "results/tables/rows.h"

namespace tessera {
namespace {

Found number_found(double value) {
  return {.value = value};
}

Found missing(std::string reason) {
  return {.reason = std::move(reason)};
}

const Metric& metric_of(const Column& column) {
  const Metric* metric = find_metric(column.metric);
  if (metric == nullptr) throw Error(fmt::format("column '{}': no metric '{}'", column.label, column.metric));
  return *metric;
}

Found metric_value(const Column& column, const RunRecord& run) {
  const Metric& metric = metric_of(column);
  const std::optional<double> value = metric.compute(run);
  if (!value) return missing(reason_without(metric, run));
  const bool is_in_GB = metric.unit == "MiB" && column.shown_unit().starts_with('G');
  return {.value = is_in_GB ? *value / 1024 : *value, .text = metric.text ? metric.text(run) : ""};
}

std::string no_baseline_reason(const RowRun& run) {
  return run.baseline.empty() ? "its experiment names no baseline" : "the baseline has no finished run";
}

Found metric_scale(const Column& column, const RowRun& run, const RowRun* baseline) {
  if (baseline == nullptr) return missing(no_baseline_reason(run));
  const Metric& metric = metric_of(column);
  const std::optional<double> now = metric.compute(*run.record), before = metric.compute(*baseline->record);
  if (!now) return missing(reason_without(metric, *run.record));
  if (!before || *before == 0) {
    return missing(reason_without(metric, *baseline->record, "the baseline"));
  }
  return number_found(*now / *before);
}

// How many rows were trained on: 500 rows for 2.93 epochs are 1465.
std::optional<double> rows_seen(const RunRecord& run) {
  const std::optional<double> rows = run.facts.number("train_rows"), epochs = run.last("epoch");
  if (!rows || !epochs) return std::nullopt;
  return *rows * *epochs;
}

// Baseline's runtime over the run's, as if both had seen equally many rows.
Found runtime_ratio(const RowRun& run, const RowRun* baseline, double factor) {
  if (baseline == nullptr) return missing(no_baseline_reason(run));
  for (const RunRecord* each : {run.record, baseline->record}) {
    const double first_step = each->facts.number("first_step").value_or(0);
    if (first_step == 0) continue;
    return missing(fmt::format("{} was resumed after step {:.0f}: its runtime is that of the rest",
                               each == run.record ? "the run" : "the baseline", first_step));
  }
  const std::optional<double> now = runtime_seconds(*run.record), before = runtime_seconds(*baseline->record);
  if (!now || !before || *now == 0) {
    return missing(fmt::format("{} recorded no runtime", now ? "the baseline" : "the run"));
  }
  const std::optional<double> rows = rows_seen(*run.record), rows_before = rows_seen(*baseline->record);
  if (!rows || !rows_before || *rows == 0 || *rows_before == 0) {
    return missing("refused: it is not recorded how many rows were trained on, so runtimes may not be comparable");
  }
  Found found = number_found(factor * (*before / *now) * (*rows / *rows_before));
  if (std::abs(*rows / *rows_before - 1) > 0.005) {
    found.remark = fmt::format(
        "trained on {:.0f} rows, the baseline on {:.0f}: runtimes are compared per row ({:.4f} s against {:.4f} s); "
        "their plain ratio, {:.2f}, would be false",
        *rows, *rows_before, *now / *rows, *before / *rows_before, factor * *before / *now);
  }
  return found;
}

double num_gpus_of(const RowRun& run) {
  const int ranks = num_ranks(*run.record);
  return ranks > 0 ? ranks : run.experiment->num_gpus();
}

// 100 %: nothing is lost by using more GPUs.
Found efficiency_by_study(const RowRun& run, const RowRun* baseline) {
  const StudyKind kind = run.experiment->study.kind;
  if (kind == StudyKind::kNone) return missing("its experiment belongs to no scaling study");
  if (baseline == nullptr) return missing(no_baseline_reason(run));
  const double gpus_ratio = num_gpus_of(run) / num_gpus_of(*baseline);
  if (kind == StudyKind::kWeakByLayers) return runtime_ratio(run, baseline, 100);
  if (kind == StudyKind::kThroughput) {
    const auto now = samples_per_second(*run.record), before = samples_per_second(*baseline->record);
    if (!now || !before || *before == 0) {
      return missing(fmt::format("{} recorded no samples/s", now ? "the baseline" : "the run"));
    }
    return number_found(100 * *now / *before / gpus_ratio);
  }
  // Equally many rows, or rows that grow with the GPUs: runtime_ratio() compares runtimes per row in both cases.
  Found found = runtime_ratio(run, baseline, 100 / gpus_ratio);
  if (kind == StudyKind::kWeakByData) found.remark.clear();  // rows are meant to differ
  return found;
}

std::string offload_text(const RunRecord& run) {
  if (!fact_is_true(run, "offload_optimizer")) return "no";
  return fact_is_true(run, "pin_memory") ? "pinned" : "yes";
}

// By the names that tables use. 'Epoch': of images, in the last epoch.
const std::vector<std::pair<std::string, Column>>& named_columns() {
  using enum ColumnRule;
  // The workshops' headings say 'allocated' for what NVML calls used; the unit names the figure.
  static const std::string used_MB = "MB used, NVML", used_GB = "GB used, NVML";
  static const std::vector<std::pair<std::string, Column>> all = {
      // What was run.
      {"setup", {.label = "Setup", .rule = kSetup}},
      {"total_gpus", {"Total GPUs", "ranks"}},
      {"offload", {.label = "Offload", .rule = kOffload}},
      {"num_layers", {"Num Layers", "num_layers"}},
      {"batch_per_gpu", {"Per-GPU Batch", "batch_size"}},
      {"num_parameters", {"Total Params", "num_parameters"}},
      {"steps_per_epoch", {"Steps per Epoch", "updates_per_epoch"}},
      {"total_steps", {"Total Steps", "total_steps"}},

      // How fast it was.
      {"samples_per_second", {"Samples/s", "samples_per_second", kValue, ""}},  // the trainer's
      {"callback_samples_per_second", {"Samples/s Callback", "callback_samples_per_second", kValue, ""}},
      {"samples_scale", {"Samples/s Scale", "samples_per_second", kScale}},
      {"steps_per_second", {"Steps/s", "steps_per_second", kValue, ""}},
      {"eval_samples_per_second", {"Evaluation Speed", "eval_samples_per_second"}},
      {"runtime", {"Runtime", "runtime"}},
      {"runtime_scale", {"Runtime Scale", "", kRuntimeScale}},
      {"efficiency", {"Efficiency", "", kEfficiency}},
      {"study_efficiency", {"Efficiency", "", kStudyEfficiency}},
      {"throughput", {"Throughput", "images_per_second"}},
      {"throughput_scale", {"Throughput Scaling", "images_per_second", kScale}},

      // What it learned.
      {"train_loss", {"Train Loss", "train_loss"}},
      {"eval_loss_epoch_1", {"Eval Loss Epoch 1", "eval_loss_epoch_1"}},
      {"eval_loss_epoch_2", {"Eval Loss Epoch 2", "eval_loss_epoch_2"}},
      {"last_eval_loss", {"Eval Loss", "eval_loss"}},
      {"epoch_loss", {"Train Loss", "epoch_loss"}},
      {"epoch_accuracy", {"Train Acc", "epoch_accuracy"}},
      {"exact_match", {"EM", "exact_match"}},
      {"f1", {"F1", "f1"}},

      // What it used. 'Device' is NVML's figure over all ranks, 'callback' the allocator's.
      {"device_memory_mean_MB", {"Memory Allocated mean", "used_mean_MB", kValue, used_MB}},
      {"device_memory_peak_MB", {"Memory Allocated peak", "used_peak_MB", kValue, used_MB}},
      {"device_memory_mean_GB", {"Memory", "used_mean_MB", kValue, used_GB, 2}},
      {"device_memory_peak_GB", {"Memory", "used_peak_MB", kValue, used_GB, 2}},
      {"callback_memory_GB", {"Memory Callback", "callback_allocated_MB", kValue, "GB allocated", 2}},
      {"peak_memory_MB", {"Peak Memory", "peak_memory_MB", kValue, "MB"}},
      {"gpu_percent", {"GPU mean", "gpu_busy_mean_percent"}},
      {"gpu_percent_peak", {"GPU peak", "gpu_busy_peak_percent"}},

      // Of the memory logs: 'GPU 0' is the first GPU of the head node that the job used; CPU is the head node's
      // processes, where psrecord's MB are MiB.
      {"gpu_peak", {"GPU 0 Peak", "gpu_log_peak_MB"}},
      {"gpu_peak_GiB", {"GPU 0 Peak", "gpu_log_peak_MB", kValue, "GiB", 2}},
      {"gpu_average", {"GPU 0 Avg", "gpu_log_average_MB"}},
      {"gpu_average_GiB", {"GPU 0 Avg", "gpu_log_average_MB", kValue, "GiB"}},
      {"gpu_mode", {"GPU 0 Mode", "gpu_log_mode_MB"}},
      {"gpu_average_scale", {"Memory Avg Scaling", "gpu_log_average_MB", kScale}},
      {"cpu_peak", {"CPU Peak", "cpu_log_peak_MB", kValue, "MB"}},
      {"cpu_average", {"CPU Avg", "cpu_log_average_MB", kValue, "MB"}},
      {"cpu_mode", {"CPU Mode", "cpu_log_mode_MB", kValue, "MB"}},
  };
  return all;
}

// A column of this name, or else a metric under its own label.
Column find_column(const std::string& name, const TableSpec& table) {
  std::vector<std::string> names;
  for (const auto& [each, column] : named_columns()) {
    if (each == name) return column;
    names.push_back(each);
  }
  if (const Metric* metric = find_metric(name)) return {metric->label, name};
  for (const std::string& each : metric_names()) add_once(names, each);
  throw UsageError(fmt::format("{}: table {}: unknown column '{}'{}; columns: {}", table.file, table.name,
                               printable(name, 40), did_you_mean(name, names), join(names, ", ")));
}

}  // namespace

std::string Column::shown_unit() const {
  if (unit) return *unit;
  if (rule == ColumnRule::kValue) return metric_of(*this).unit;
  if (is_text()) return "";
  return is_percent() ? "%" : "x";
}

int Column::shown_digits() const {
  if (digits) return *digits;
  if (rule == ColumnRule::kValue) return metric_of(*this).digits;
  return is_percent() ? 1 : 2;
}

Found found_in(const Column& column, const RowRun& run, const RowRun* baseline) {
  switch (column.rule) {
    case ColumnRule::kValue:
      return metric_value(column, *run.record);
    case ColumnRule::kScale:
      return metric_scale(column, run, baseline);
    case ColumnRule::kRuntimeScale:
      return runtime_ratio(run, baseline, 1);
    case ColumnRule::kEfficiency:
      return runtime_ratio(run, baseline, 100);
    case ColumnRule::kStudyEfficiency:
      return efficiency_by_study(run, baseline);
    case ColumnRule::kSetup:
      return {.text = setup_text(*run.experiment, run.record)};
    case ColumnRule::kOffload:
      return {.text = offload_text(*run.record)};
  }
  return {};
}

std::vector<Column> columns_of(const TableSpec& table) {
  std::vector<Column> columns;
  for (const ColumnSpec& spec : table.columns) {
    Column& column = columns.emplace_back(find_column(spec.name, table));
    if (spec.label) column.label = *spec.label;
    if (spec.unit) column.unit = spec.unit;
  }
  return columns;
}

}  // namespace tessera
