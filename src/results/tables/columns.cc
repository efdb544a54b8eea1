#include "results/tables/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "record/figures.h"
#include "results/tables/rows.h"

namespace tessera {
namespace {

using RecordFormula = std::function<std::optional<double>(const RunRecord&)>;

Found found_or(const std::optional<double>& value, const std::string& reason) {
  Found found;
  found.value = value;
  if (!value) found.reason = reason;
  return found;
}

// A number that the record holds. `what` completes "the run recorded no ...".
Column of_record(const std::string& label, const std::string& unit, int digits, const std::string& what,
                 RecordFormula formula) {
  return {label, unit, digits, [what, formula = std::move(formula)](const RowRun& run, const RowRun*) {
            return found_or(formula(run.record), "the run recorded no " + what);
          }};
}

Column of_fact(const std::string& label, const std::string& fact) {
  return of_record(label, "", 0, fact, [fact](const RunRecord& run) { return run.facts.number(fact); });
}

Column of_metric(const std::string& label, const std::string& unit, int digits, const std::string& metric) {
  return of_record(label, unit, digits, metric, [metric](const RunRecord& run) { return run.last(metric); });
}

std::string no_baseline_reason(const RowRun& run) {
  return run.baseline.empty() ? "its experiment names no baseline" : "the baseline has no finished run";
}

// Current over baseline of a number.
Column scale(const std::string& label, const std::string& what, RecordFormula formula) {
  return {label, "x", 2, [what, formula = std::move(formula)](const RowRun& run, const RowRun* baseline) {
            if (baseline == nullptr) return found_or(std::nullopt, no_baseline_reason(run));
            const std::optional<double> now = formula(run.record), before = formula(baseline->record);
            if (!now || !before || *before == 0) {
              return found_or(std::nullopt, fmt::format("{} recorded no {}", now ? "the baseline" : "the run", what));
            }
            return found_or(*now / *before, "");
          }};
}

// How many rows were trained on: 500 rows for 2.93 epochs are 1465.
std::optional<double> rows_seen(const RunRecord& run) {
  const std::optional<double> rows = run.facts.number("train_rows"), epochs = run.last("epoch");
  if (!rows || !epochs) return std::nullopt;
  return *rows * *epochs;
}

// Baseline's runtime over the run's, as if both had seen equally many rows.
Found runtime_ratio(const RowRun& run, const RowRun* baseline, double factor) {
  if (baseline == nullptr) return found_or(std::nullopt, no_baseline_reason(run));
  for (const RunRecord* each : {&run.record, &baseline->record}) {
    const double first_step = each->facts.number("first_step").value_or(0);
    if (first_step == 0) continue;
    return found_or(std::nullopt, fmt::format("{} was resumed after step {:.0f}: its runtime is that of the rest",
                                              each == &run.record ? "the run" : "the baseline", first_step));
  }
  const std::optional<double> now = runtime_seconds(run.record), before = runtime_seconds(baseline->record);
  if (!now || !before || *now == 0) {
    return found_or(std::nullopt, fmt::format("{} recorded no runtime", now ? "the baseline" : "the run"));
  }
  const std::optional<double> rows = rows_seen(run.record), rows_before = rows_seen(baseline->record);
  if (!rows || !rows_before || *rows == 0 || *rows_before == 0) {
    return found_or(std::nullopt,
                    "refused: it is not recorded how many rows were trained on, so runtimes may not be comparable");
  }
  Found found = found_or(factor * (*before / *now) * (*rows / *rows_before), "");
  if (std::abs(*rows / *rows_before - 1) > 0.005) {
    found.remark = fmt::format(
        "trained on {:.0f} rows, the baseline on {:.0f}: runtimes are compared per row ({:.4f} s against {:.4f} s); "
        "their plain ratio, {:.2f}, would be false",
        *rows, *rows_before, *now / *rows, *before / *rows_before, factor * *before / *now);
  }
  return found;
}

double num_gpus_of(const RowRun& run) {
  const int ranks = num_ranks(run.record);
  return ranks > 0 ? ranks : run.experiment->num_gpus();
}

// 100 %: nothing is lost by using more GPUs.
Found efficiency_by_study(const RowRun& run, const RowRun* baseline) {
  const StudyKind kind = run.experiment->study.kind;
  if (kind == StudyKind::kNone) return found_or(std::nullopt, "its experiment belongs to no scaling study");
  if (baseline == nullptr) return found_or(std::nullopt, no_baseline_reason(run));
  const double gpus_ratio = num_gpus_of(run) / num_gpus_of(*baseline);
  if (kind == StudyKind::kWeakByLayers) return runtime_ratio(run, baseline, 100);
  if (kind == StudyKind::kThroughput) {
    const auto now = samples_per_second(run.record), before = samples_per_second(baseline->record);
    if (!now || !before || *before == 0) {
      return found_or(std::nullopt, fmt::format("{} recorded no samples/s", now ? "the baseline" : "the run"));
    }
    return found_or(100 * *now / *before / gpus_ratio, "");
  }
  // Equally many rows, or rows that grow with the GPUs: runtime_ratio() compares runtimes per row in both cases.
  Found found = runtime_ratio(run, baseline, 100 / gpus_ratio);
  if (kind == StudyKind::kWeakByData) found.remark.clear();  // rows are meant to differ
  return found;
}

std::optional<double> in_GB(std::optional<double> MB) {
  if (MB) *MB /= 1024;
  return MB;
}

// The workshops' headings say 'allocated' for what NVML calls used; the unit names the figure.
const std::string kUsedMB = "MB used, NVML", kUsedGB = "GB used, NVML";
const std::string kNoNvml = "NVML figure of used GPU memory";
const std::string kNoSamples = "the driver does not say how much GPU memory is used";

// Of the first GPU that the job used, in the head node's log.
Column of_gpu_log(const std::string& label, const std::string& unit, int digits,
                  std::function<double(const MemoryStatistics&)> formula) {
  const double divisor = unit == "GiB" ? 1024 : 1;
  return {label, unit, digits, [divisor, formula = std::move(formula)](const RowRun& run, const RowRun*) {
            if (run.memory.gpus.empty()) {
              return found_or(std::nullopt, run.record.gpu_logs.empty() ? "the run has no GPU memory log"
                                                                        : join(run.memory.problems, "; "));
            }
            if (run.memory.first_gpu().MiB.num_samples == 0) return found_or(std::nullopt, kNoSamples);
            return found_or(formula(run.memory.first_gpu().MiB) / divisor, "");
          }};
}

Column of_cpu_log(const std::string& label, const std::string& unit, int digits,
                  std::function<double(const MemoryStatistics&)> formula) {
  return {label, unit, digits, [formula = std::move(formula)](const RowRun& run, const RowRun*) {
            if (run.memory.hosts.empty()) {
              return found_or(std::nullopt, run.record.cpu_logs.empty() ? "the run has no CPU memory log"
                                                                        : join(run.memory.problems, "; "));
            }
            return found_or(formula(run.memory.hosts.front().MiB), "");
          }};
}

double peak_of(const MemoryStatistics& figures) {
  return figures.peak;
}

double average_of(const MemoryStatistics& figures) {
  return figures.average;
}

double first_mode_of(const MemoryStatistics& figures) {
  return figures.modes.empty() ? 0 : figures.modes.front();
}

// The value is the first mode, the text names all.
Column with_all_modes(Column column, bool is_gpu) {
  column.formula = [first = std::move(column.formula), is_gpu](const RowRun& run, const RowRun* baseline) {
    Found found = first(run, baseline);
    if (found.value) found.text = modes_text(is_gpu ? run.memory.first_gpu().MiB : run.memory.hosts.front().MiB);
    return found;
  };
  return column;
}

// A text that every run has.
Column of_text(const std::string& label, std::function<std::string(const RowRun&)> formula) {
  return {label, "", 0,
          [formula = std::move(formula)](const RowRun& run, const RowRun*) {
            Found found;
            found.text = formula(run);
            return found;
          },
          true};
}

std::string offload_text(const RowRun& run) {
  if (!fact_is_true(run.record, "offload_optimizer")) return "no";
  return fact_is_true(run.record, "pin_memory") ? "pinned" : "yes";
}

Column with_grouped_digits(Column column) {
  column.formula = [number = std::move(column.formula)](const RowRun& run, const RowRun* baseline) {
    Found found = number(run, baseline);
    if (found.value) found.text = grouped(static_cast<long long>(*found.value));
    return found;
  };
  return column;
}

// The evaluation nearest to the end of an epoch, which is at 0.98 or 1.0.
Column eval_loss_after(int epoch) {
  const std::string what = fmt::format("evaluation at the end of epoch {}", epoch);
  return of_record(fmt::format("Eval Loss Epoch {}", epoch), "", 4, what, [epoch](const RunRecord& run) {
    std::optional<double> loss;
    double distance = 0.25;
    for (const LogRecord& record : run.metrics) {
      const std::optional<double> value = record.number("eval_loss"), at = record.number("epoch");
      if (!value || !at || std::abs(*at - epoch) > distance) continue;
      loss = value;
      distance = std::abs(*at - epoch);
    }
    return loss;
  });
}

std::optional<double> any_train_loss(const RunRecord& run) {
  const std::optional<double> loss = run.last("train_loss");
  return loss ? loss : run.last("Loss/train");
}

std::optional<double> used_peak_MB(const RunRecord& run) {
  return largest_of_ranks(run, "used_peak_MB");
}

std::optional<double> peak_memory_MB(const RunRecord& run) {
  return run.text("device") == "cpu" ? resident_peak_MB(run) : allocated_peak_MB(run);
}

std::optional<double> gpu_percent(const RunRecord& run) {
  return run.text("device") == "cpu" ? std::nullopt : busy_mean_percent(run);
}

std::optional<double> gpu_percent_peak(const RunRecord& run) {
  return run.text("device") == "cpu" ? std::nullopt : largest_of_ranks(run, "busy_peak_percent");
}

Found gpu_average_scale(const RowRun& run, const RowRun* baseline) {
  if (baseline == nullptr) return found_or(std::nullopt, no_baseline_reason(run));
  if (run.memory.gpus.empty() || baseline->memory.gpus.empty()) {
    return found_or(std::nullopt,
                    fmt::format("{} has no GPU memory log", run.memory.gpus.empty() ? "the run" : "the baseline"));
  }
  const double now = run.memory.first_gpu().MiB.average, before = baseline->memory.first_gpu().MiB.average;
  if (now <= 0 || before <= 0) return found_or(std::nullopt, kNoSamples);
  return found_or(now / before, "");
}

std::vector<std::pair<std::string, Column>> make_columns() {
  const auto last = [](const char* metric) { return [metric](const RunRecord& run) { return run.last(metric); }; };
  return {
      // What was run.
      {"setup", of_text("Setup", [](const RowRun& run) { return setup_text(*run.experiment, &run.record); })},
      {"total_gpus",
       {"Total GPUs", "", 0, [](const RowRun& run, const RowRun*) { return found_or(num_gpus_of(run), ""); }}},
      {"offload", of_text("Offload", offload_text)},
      {"num_layers", of_fact("Num Layers", "num_layers")},
      {"batch_per_gpu", of_fact("Per-GPU Batch", "batch_size")},
      {"num_parameters", with_grouped_digits(of_fact("Total Params", "num_parameters"))},
      {"steps_per_epoch", of_fact("Steps per Epoch", "updates_per_epoch")},
      {"total_steps", of_record("Total Steps", "", 0, "steps",
                                [](const RunRecord& run) { return static_cast<double>(run.total_steps); })},

      // How fast it was. Scales are current / baseline, those of runtimes baseline / current for equally much data.
      {"samples_per_second", of_metric("Samples/s", "", 3, "train_samples_per_second")},
      {"callback_samples_per_second",
       of_record("Samples/s Callback", "", 3, "train/samples_per_second_mean",
                 [](const RunRecord& run) { return run.summary.number("train/samples_per_second_mean"); })},
      {"samples_scale", scale("Samples/s Scale", "samples/s", last("train_samples_per_second"))},
      {"steps_per_second", of_metric("Steps/s", "", 3, "train_steps_per_second")},
      {"eval_samples_per_second", of_metric("Evaluation Speed", "samples/s", 3, "eval_samples_per_second")},
      {"runtime", of_metric("Runtime", "s", 2, "train_runtime")},
      {"runtime_scale",
       {"Runtime Scale", "x", 2,
        [](const RowRun& run, const RowRun* baseline) { return runtime_ratio(run, baseline, 1); }}},
      {"efficiency",
       {"Efficiency", "%", 1,
        [](const RowRun& run, const RowRun* baseline) { return runtime_ratio(run, baseline, 100); }}},
      {"study_efficiency", {"Efficiency", "%", 1, efficiency_by_study}},
      {"throughput", of_metric("Throughput", "img/s", 1, "Throughput/images_per_sec")},
      {"throughput_scale", scale("Throughput Scaling", "throughput", last("Throughput/images_per_sec"))},

      // What it learned. 'Epoch': of images, in the last epoch.
      {"train_loss", of_metric("Train Loss", "", 4, "train_loss")},
      {"any_train_loss", of_record("Loss", "", 4, "train_loss", any_train_loss)},
      {"eval_loss_epoch_1", eval_loss_after(1)},
      {"eval_loss_epoch_2", eval_loss_after(2)},
      {"eval_loss_epoch_3", eval_loss_after(3)},
      {"last_eval_loss", of_metric("Eval Loss", "", 4, "eval_loss")},
      {"epoch_loss", of_metric("Train Loss", "", 3, "Loss/train")},
      {"epoch_accuracy", of_metric("Train Acc", "%", 2, "Accuracy/train")},
      {"exact_match",
       of_record("EM", "", 4, "exact match", [](const RunRecord& run) { return answer_score(run, "exact_match"); })},
      {"f1", of_record("F1", "", 4, "F1", [](const RunRecord& run) { return answer_score(run, "f1"); })},

      // What it used. 'Device' is NVML's figure over all ranks, 'callback' the allocator's.
      {"device_memory_mean_MB", of_record("Memory Allocated mean", kUsedMB, 0, kNoNvml, used_mean_MB)},
      {"device_memory_peak_MB", of_record("Memory Allocated peak", kUsedMB, 0, kNoNvml, used_peak_MB)},
      {"device_memory_mean_GB",
       of_record("Memory", kUsedGB, 2, kNoNvml, [](const RunRecord& run) { return in_GB(used_mean_MB(run)); })},
      {"device_memory_peak_GB",
       of_record("Memory", kUsedGB, 2, kNoNvml, [](const RunRecord& run) { return in_GB(used_peak_MB(run)); })},
      {"callback_memory_GB",
       of_record("Memory Callback", "GB allocated", 2, "avg_mem_alloc_MB",
                 [](const RunRecord& run) { return in_GB(run.summary.number("avg_mem_alloc_MB")); })},
      {"peak_memory_MB", of_record("Peak Memory", "MB", 0, "peak of memory", peak_memory_MB)},
      {"gpu_percent", of_record("GPU mean", "%", 1, "GPU utilisation", gpu_percent)},
      {"gpu_percent_peak", of_record("GPU peak", "%", 1, "peak of GPU utilisation", gpu_percent_peak)},

      // Of the memory logs: 'GPU 0' is the first GPU of the head node that the job used; CPU is the head node's
      // processes, where psrecord's MB are MiB.
      {"gpu_peak", of_gpu_log("GPU 0 Peak", "MiB", 0, peak_of)},
      {"gpu_peak_GiB", of_gpu_log("GPU 0 Peak", "GiB", 2, peak_of)},
      {"gpu_average", of_gpu_log("GPU 0 Avg", "MiB", 2, average_of)},
      {"gpu_average_GiB", of_gpu_log("GPU 0 Avg", "GiB", 2, average_of)},
      {"gpu_mode", with_all_modes(of_gpu_log("GPU 0 Mode", "MiB", 0, first_mode_of), true)},
      {"gpu_average_scale", {"Memory Avg Scaling", "x", 2, gpu_average_scale}},
      {"cpu_peak", of_cpu_log("CPU Peak", "MB", 0, peak_of)},
      {"cpu_average", of_cpu_log("CPU Avg", "MB", 2, average_of)},
      {"cpu_mode", with_all_modes(of_cpu_log("CPU Mode", "MB", 0, first_mode_of), false)},
  };
}

}  // namespace

std::vector<Column> columns_of(const TableSpec& table) {
  static const std::vector<std::pair<std::string, Column>> all = make_columns();
  std::vector<Column> columns;
  for (const ColumnSpec& spec : table.columns) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == spec.name; });
    if (found == all.end()) {
      std::vector<std::string> names;
      for (const auto& [name, column] : all) names.push_back(name);
      const std::optional<std::string> meant = nearest(spec.name, names);
      throw UsageError(fmt::format("{}: table {}: unknown column '{}'{}; columns: {}", table.file, table.name,
                                   printable(spec.name, 40), meant ? fmt::format(", did you mean '{}'?", *meant) : "",
                                   join(names, ", ")));
    }
    Column& column = columns.emplace_back(found->second);
    column.label = spec.label.value_or(column.label);
    column.unit = spec.unit.value_or(column.unit);
  }
  return columns;
}

}  // namespace tessera
