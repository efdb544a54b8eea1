// The registry of metrics: each number of a run has one name, one unit, one formula and one direction here. Lists,
// comparisons, gates, tables, the page and the answers to questions take them from here. (no torch)
//
// A new metric is one entry in metrics.cc. MB are 2^20 bytes (MiB in texts that users see). Three numbers of GPU memory
// are never mixed up: allocated and reserved are torch's allocator's, used is what NVML says all processes hold.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace tessera {

enum class Better { kHigher, kLower, kUnknown };
enum class MetricSource { kRecord, kGpuLog, kCpuLog };

struct Metric {
  std::string name;   // what --metric and tables take: samples_per_second
  std::string label;  // what people read: "training speed"
  std::string unit;
  int digits;  // after the point
  Better better;
  std::function<std::optional<double>(const RunRecord&)> compute;  // none: the run does not (yet) have it
  std::string missing = "";                                        // what such a run lacks; empty: the name
  MetricSource source = MetricSource::kRecord;
  std::function<std::string(const RunRecord&)> text = nullptr;  // shown instead of the number
};

// Those that `tessera runs show` and `compare` show, in their order.
const std::vector<Metric>& main_metrics();
// The parts of a step that any of these runs recorded, in ms per step: "forward_ms".
std::vector<Metric> part_metrics(const std::vector<const RunRecord*>& runs);
// Those of the runs that are shown: the main ones and the parts.
std::vector<Metric> shown_metrics(const std::vector<const RunRecord*>& runs);
// Any of the registry; null: there is none of this name.
const Metric* find_metric(const std::string& name);
std::vector<std::string> metric_names();
// Why a run has no such value: "the run recorded no F1". `who`: the run, the baseline.
std::string reason_without(const Metric& metric, const RunRecord& run, const std::string& who = "the run");

// The formulas that other formulas build on.
std::optional<double> samples_per_second(const RunRecord& run);  // the trainer's; of a running run: at the last log
std::optional<double> runtime_seconds(const RunRecord& run);
std::optional<double> train_loss(const RunRecord& run);  // the mean over the run or epoch; of a running run: the last
std::optional<double> allocated_peak_MB(const RunRecord& run);
std::optional<double> resident_peak_MB(const RunRecord& run);  // of a CPU rank's process
// Any other by its name in the registry.
std::optional<double> value_of(const RunRecord& run, const std::string& metric);

}  // namespace tessera
