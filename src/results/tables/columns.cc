#include "results/tables/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "record/metrics.h"

namespace tessera {
namespace {

Found found_or(const std::optional<double>& value, const std::string& reason) {
  Found found;
  found.value = value;
  if (!value) found.reason = reason;
  return found;
}

Found text_found(std::string text) {
  Found found;
  found.text = std::move(text);
  return found;
}

const Metric& metric_of(const ColumnDeclaration& column) {
  const Metric* metric = find_metric(column.metric);
  if (metric == nullptr) throw Error(fmt::format("column '{}': no metric '{}'", column.name, column.metric));
  return *metric;
}

Found metric_value(const ColumnDeclaration& column, const RunRecord& run) {
  const Metric& metric = metric_of(column);
  const std::optional<double> value = metric.compute(run);
  if (!value) return found_or(std::nullopt, reason_without(metric, run));
  const bool is_in_GB = metric.unit == "MiB" && column.shown_unit().starts_with('G');
  Found found = found_or(is_in_GB ? *value / 1024 : *value, "");
  if (metric.text) found.text = metric.text(run);
  return found;
}

std::string no_baseline_reason(const RowRun& run) {
  return run.baseline.empty() ? "its experiment names no baseline" : "the baseline has no finished run";
}

Found metric_scale(const ColumnDeclaration& column, const RowRun& run, const RowRun* baseline) {
  if (baseline == nullptr) return found_or(std::nullopt, no_baseline_reason(run));
  const Metric& metric = metric_of(column);
  const std::optional<double> now = metric.compute(run.record), before = metric.compute(baseline->record);
  if (!now) return found_or(std::nullopt, reason_without(metric, run.record));
  if (!before || *before == 0) {
    return found_or(std::nullopt, reason_without(metric, baseline->record, "the baseline"));
  }
  return found_or(*now / *before, "");
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

std::string offload_text(const RunRecord& run) {
  if (!fact_is_true(run, "offload_optimizer")) return "no";
  return fact_is_true(run, "pin_memory") ? "pinned" : "yes";
}

std::string number_of(int number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

}  // namespace

std::string ColumnDeclaration::shown_unit() const {
  if (unit) return *unit;
  switch (rule) {
    case ColumnRule::kValue:
      return metric_of(*this).unit;
    case ColumnRule::kScale:
    case ColumnRule::kRuntimeScale:
      return "x";
    case ColumnRule::kEfficiency:
    case ColumnRule::kStudyEfficiency:
      return "%";
    default:
      return "";
  }
}

int ColumnDeclaration::shown_digits() const {
  if (digits) return *digits;
  if (rule == ColumnRule::kValue) return metric_of(*this).digits;
  return rule == ColumnRule::kEfficiency || rule == ColumnRule::kStudyEfficiency ? 1 : 2;
}

Found found_in(const ColumnDeclaration& column, const RowRun& run, const RowRun* baseline) {
  switch (column.rule) {
    case ColumnRule::kValue:
      return metric_value(column, run.record);
    case ColumnRule::kScale:
      return metric_scale(column, run, baseline);
    case ColumnRule::kRuntimeScale:
      return runtime_ratio(run, baseline, 1);
    case ColumnRule::kEfficiency:
      return runtime_ratio(run, baseline, 100);
    case ColumnRule::kStudyEfficiency:
      return efficiency_by_study(run, baseline);
    case ColumnRule::kSetup:
      return text_found(setup_text(*run.experiment, &run.record));
    case ColumnRule::kOffload:
      return text_found(offload_text(run.record));
  }
  return {};
}

std::string setup_text(const Experiment& experiment, const RunRecord* run) {
  int nodes = experiment.nodes, gpus = experiment.num_gpus();
  if (run != nullptr && num_ranks(*run) > 0) {
    nodes = std::max(1, num_nodes(*run));
    gpus = num_ranks(*run);
  }
  if (gpus % nodes != 0) return fmt::format("{}, {}", number_of(nodes, "node"), number_of(gpus, "GPU"));
  return fmt::format("{} x {}", number_of(nodes, "node"), number_of(gpus / nodes, "GPU"));
}

}  // namespace tessera
