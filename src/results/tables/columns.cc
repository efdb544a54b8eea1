#include "results/tables/columns.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"
#include "record/figures.h"
#include "results/tables/setup_text.h"

namespace tessera::columns {
namespace {

using RecordFormula = std::function<std::optional<double>(const RunRecord&)>;

Found found_or(const std::optional<double>& value, const std::string& reason) {
  Found found;
  found.value = value;
  if (!value) found.reason = reason;
  return found;
}

// A number that the record holds. `what` completes "the run recorded no ...".
ColumnDeclaration of_record(const std::string& name, const std::string& unit, int digits, const std::string& what,
                            RecordFormula formula) {
  return {name, unit, digits, [what, formula = std::move(formula)](const RowRun& run, const RowRun*) {
            return found_or(formula(run.record), "the run recorded no " + what);
          }};
}

ColumnDeclaration of_fact(const std::string& name, const std::string& fact) {
  return of_record(name, "", 0, fact, [fact](const RunRecord& run) { return run.facts.number(fact); });
}

ColumnDeclaration of_metric(const std::string& name, const std::string& unit, int digits, const std::string& metric) {
  return of_record(name, unit, digits, metric, [metric](const RunRecord& run) { return run.last(metric); });
}

std::string no_baseline_reason(const RowRun& run) {
  return run.baseline.empty() ? "its experiment names no baseline" : "the baseline has no finished run";
}

// Current over baseline of a number.
ColumnDeclaration scale(const std::string& name, const std::string& what, RecordFormula formula) {
  return {name, "x", 2, [what, formula = std::move(formula)](const RowRun& run, const RowRun* baseline) {
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
ColumnDeclaration of_gpu_log(const std::string& name, const std::string& unit, int digits,
                             std::function<double(const MemoryStatistics&)> formula) {
  const double divisor = unit == "GiB" ? 1024 : 1;
  return {name, unit, digits, [divisor, formula = std::move(formula)](const RowRun& run, const RowRun*) {
            if (run.memory.gpus.empty()) {
              return found_or(std::nullopt, run.record.gpu_logs.empty() ? "the run has no GPU memory log"
                                                                        : join(run.memory.problems, "; "));
            }
            if (run.memory.first_gpu().MiB.num_samples == 0) return found_or(std::nullopt, kNoSamples);
            return found_or(formula(run.memory.first_gpu().MiB) / divisor, "");
          }};
}

ColumnDeclaration of_cpu_log(const std::string& name, const std::string& unit, int digits,
                             std::function<double(const MemoryStatistics&)> formula) {
  return {name, unit, digits, [formula = std::move(formula)](const RowRun& run, const RowRun*) {
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
ColumnDeclaration with_all_modes(ColumnDeclaration column, bool is_gpu) {
  column.formula = [first = std::move(column.formula), is_gpu](const RowRun& run, const RowRun* baseline) {
    Found found = first(run, baseline);
    if (found.value) found.text = modes_text(is_gpu ? run.memory.first_gpu().MiB : run.memory.hosts.front().MiB);
    return found;
  };
  return column;
}

}  // namespace

ColumnDeclaration setup() {
  ColumnDeclaration column{"Setup", "", 0, [](const RowRun& run, const RowRun*) {
                             Found found;
                             found.text = setup_text(*run.experiment, &run.record);
                             return found;
                           }};
  column.is_text = true;
  return column;
}

ColumnDeclaration total_gpus() {
  return {"Total GPUs", "", 0, [](const RowRun& run, const RowRun*) { return found_or(num_gpus_of(run), ""); }};
}

ColumnDeclaration offload() {
  ColumnDeclaration column{"Offload", "", 0, [](const RowRun& run, const RowRun*) {
                             Found found;
                             found.text = !fact_is_true(run.record, "offload_optimizer") ? "no"
                                          : fact_is_true(run.record, "pin_memory")       ? "pinned"
                                                                                         : "yes";
                             return found;
                           }};
  column.is_text = true;
  return column;
}

ColumnDeclaration num_layers() {
  return of_fact("Num Layers", "num_layers");
}

ColumnDeclaration batch_per_gpu() {
  return of_fact("Per-GPU Batch", "batch_size");
}

ColumnDeclaration num_parameters() {
  ColumnDeclaration column = of_fact("Total Params", "num_parameters");
  column.formula = [number = std::move(column.formula)](const RowRun& run, const RowRun* baseline) {
    Found found = number(run, baseline);
    if (found.value) found.text = grouped(static_cast<long long>(*found.value));
    return found;
  };
  return column;
}

ColumnDeclaration steps_per_epoch() {
  return of_fact("Steps per Epoch", "updates_per_epoch");
}

ColumnDeclaration total_steps() {
  return of_record("Total Steps", "", 0, "steps",
                   [](const RunRecord& run) { return static_cast<double>(run.total_steps); });
}

ColumnDeclaration samples_per_second(const std::string& name) {
  return of_metric(name, name.starts_with("Samples/s") ? "" : "samples/s", 3, "train_samples_per_second");
}

ColumnDeclaration callback_samples_per_second() {
  return of_record("Samples/s Callback", "", 3, "train/samples_per_second_mean",
                   [](const RunRecord& run) { return run.summary.number("train/samples_per_second_mean"); });
}

ColumnDeclaration samples_scale() {
  return scale("Samples/s Scale", "samples/s",
               [](const RunRecord& run) { return run.last("train_samples_per_second"); });
}

ColumnDeclaration steps_per_second() {
  return of_metric("Steps/s", "", 3, "train_steps_per_second");
}

ColumnDeclaration eval_samples_per_second() {
  return of_metric("Evaluation Speed", "samples/s", 3, "eval_samples_per_second");
}

ColumnDeclaration runtime() {
  return of_metric("Runtime", "s", 2, "train_runtime");
}

ColumnDeclaration runtime_scale() {
  return {"Runtime Scale", "x", 2,
          [](const RowRun& run, const RowRun* baseline) { return runtime_ratio(run, baseline, 1); }};
}

ColumnDeclaration efficiency() {
  return {"Efficiency", "%", 1,
          [](const RowRun& run, const RowRun* baseline) { return runtime_ratio(run, baseline, 100); }};
}

ColumnDeclaration study_efficiency() {
  return {"Efficiency", "%", 1, efficiency_by_study};
}

ColumnDeclaration throughput() {
  return of_metric("Throughput", "img/s", 1, "Throughput/images_per_sec");
}

ColumnDeclaration throughput_scale() {
  return scale("Throughput Scaling", "throughput",
               [](const RunRecord& run) { return run.last("Throughput/images_per_sec"); });
}

ColumnDeclaration train_loss(const std::string& name) {
  return of_metric(name, "", 4, "train_loss");
}

ColumnDeclaration any_train_loss() {
  return of_record("Loss", "", 4, "train_loss", [](const RunRecord& run) {
    const std::optional<double> loss = run.last("train_loss");
    return loss ? loss : run.last("Loss/train");
  });
}

ColumnDeclaration eval_loss(int epoch) {
  const std::string what = fmt::format("evaluation at the end of epoch {}", epoch);
  return of_record(fmt::format("Eval Loss Epoch {}", epoch), "", 4, what, [epoch](const RunRecord& run) {
    std::optional<double> loss;
    double distance = 0.25;  // an epoch ends at 0.98 or 1.0
    for (const LogRecord& record : run.metrics) {
      const std::optional<double> value = record.number("eval_loss"), at = record.number("epoch");
      if (!value || !at || std::abs(*at - epoch) > distance) continue;
      loss = value;
      distance = std::abs(*at - epoch);
    }
    return loss;
  });
}

ColumnDeclaration last_eval_loss(const std::string& name) {
  return of_metric(name, "", 4, "eval_loss");
}

ColumnDeclaration epoch_loss() {
  return of_metric("Train Loss", "", 3, "Loss/train");
}

ColumnDeclaration epoch_accuracy() {
  return of_metric("Train Acc", "%", 2, "Accuracy/train");
}

ColumnDeclaration exact_match() {
  return of_record("EM", "", 4, "exact match", [](const RunRecord& run) { return answer_score(run, "exact_match"); });
}

ColumnDeclaration f1() {
  return of_record("F1", "", 4, "F1", [](const RunRecord& run) { return answer_score(run, "f1"); });
}

ColumnDeclaration device_memory_mean_MB() {
  return of_record("Memory Allocated mean", kUsedMB, 0, kNoNvml, used_mean_MB);
}

ColumnDeclaration device_memory_peak_MB() {
  return of_record("Memory Allocated peak", kUsedMB, 0, kNoNvml,
                   [](const RunRecord& run) { return largest_of_ranks(run, "used_peak_MB"); });
}

ColumnDeclaration device_memory_mean_GB(const std::string& name) {
  return of_record(name, kUsedGB, 2, kNoNvml, [](const RunRecord& run) { return in_GB(used_mean_MB(run)); });
}

ColumnDeclaration device_memory_peak_GB(const std::string& name) {
  return of_record(name, kUsedGB, 2, kNoNvml,
                   [](const RunRecord& run) { return in_GB(largest_of_ranks(run, "used_peak_MB")); });
}

ColumnDeclaration callback_memory_GB() {
  return of_record("Memory Callback", "GB allocated", 2, "avg_mem_alloc_MB",
                   [](const RunRecord& run) { return in_GB(run.summary.number("avg_mem_alloc_MB")); });
}

ColumnDeclaration peak_memory_MB() {
  return of_record("Peak Memory", "MB", 0, "peak of memory", [](const RunRecord& run) {
    return run.text("device") == "cpu" ? resident_peak_MB(run) : allocated_peak_MB(run);
  });
}

ColumnDeclaration gpu_percent() {
  return of_record("GPU mean", "%", 1, "GPU utilisation", [](const RunRecord& run) {
    return run.text("device") == "cpu" ? std::nullopt : busy_mean_percent(run);
  });
}

ColumnDeclaration gpu_percent_peak() {
  return of_record("GPU peak", "%", 1, "peak of GPU utilisation", [](const RunRecord& run) {
    return run.text("device") == "cpu" ? std::nullopt : largest_of_ranks(run, "busy_peak_percent");
  });
}

ColumnDeclaration gpu_peak(const std::string& unit) {
  return of_gpu_log("GPU 0 Peak", unit, unit == "GiB" ? 2 : 0, peak_of);
}

ColumnDeclaration gpu_average(const std::string& unit) {
  return of_gpu_log("GPU 0 Avg", unit, 2, average_of);
}

ColumnDeclaration gpu_mode() {
  return with_all_modes(of_gpu_log("GPU 0 Mode", "MiB", 0, first_mode_of), true);
}

ColumnDeclaration gpu_average_scale() {
  return {"Memory Avg Scaling", "x", 2, [](const RowRun& run, const RowRun* baseline) {
            if (baseline == nullptr) return found_or(std::nullopt, no_baseline_reason(run));
            if (run.memory.gpus.empty() || baseline->memory.gpus.empty()) {
              return found_or(std::nullopt, fmt::format("{} has no GPU memory log",
                                                        run.memory.gpus.empty() ? "the run" : "the baseline"));
            }
            const double now = run.memory.first_gpu().MiB.average, before = baseline->memory.first_gpu().MiB.average;
            if (now <= 0 || before <= 0) return found_or(std::nullopt, kNoSamples);
            return found_or(now / before, "");
          }};
}

ColumnDeclaration cpu_peak(const std::string& unit) {
  return of_cpu_log("CPU Peak", unit, 0, peak_of);
}

ColumnDeclaration cpu_average(const std::string& unit) {
  return of_cpu_log("CPU Avg", unit, 2, average_of);
}

ColumnDeclaration cpu_mode() {
  return with_all_modes(of_cpu_log("CPU Mode", "MB", 0, first_mode_of), false);
}

}  // namespace tessera::columns
