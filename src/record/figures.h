// The figures of a run, each with one formula and one direction, for lists, comparisons, tables and the page. (no
// torch)
//
// MB are 2^20 bytes (MiB in names that users see). Three GPU figures that are never mixed up: allocated and reserved
// are torch's allocator's, used is what NVML says all processes hold.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace tessera {

enum class Better { kHigher, kLower, kUnknown };

struct Figure {
  std::string name;   // what --metric takes: samples_per_second
  std::string label;  // what people read: "training speed"
  std::string unit;
  Better better;
  int digits;  // after the point
  std::function<std::optional<double>(const RunRecord&)> of;
};

const std::vector<Figure>& figures();
// The parts of a step that any of these runs recorded, as figures in ms per step: "forward_ms".
std::vector<Figure> part_figures(const std::vector<const RunRecord*>& runs);

// Formulas that others build on. None: the run does not (yet) have the figure.
std::optional<double> samples_per_second(const RunRecord& run);  // the trainer's; of a running run: at the last log
std::optional<double> runtime_seconds(const RunRecord& run);
std::optional<double> train_loss(const RunRecord& run);  // the mean over the run; of a running run: the last
std::optional<double> answer_score(const RunRecord& run, const std::string& name);  // exact_match, f1
// A number of the ranks, such as used_peak_MB: the largest, or the mean over those that have it.
std::optional<double> largest_of_ranks(const RunRecord& run, const std::string& number);
std::optional<double> mean_of_ranks(const RunRecord& run, const std::string& number);
std::optional<double> allocated_peak_MB(const RunRecord& run);
std::optional<double> resident_peak_MB(const RunRecord& run);  // of a CPU rank's process
std::optional<double> used_mean_MB(const RunRecord& run);
std::optional<double> busy_mean_percent(const RunRecord& run);
// Of one part of a step, averaged over the ranks.
std::optional<double> part_mean_ms(const RunRecord& run, const std::string& part);

// Facts, found also in a record of format 1.
std::string job_text(const RunRecord& run);
std::string strategy_text(const RunRecord& run);
std::string precision_text(const RunRecord& run);
int num_ranks(const RunRecord& run);
int num_nodes(const RunRecord& run);
std::int64_t steps_done(const RunRecord& run);
// A fact of any type as text; empty: the run does not have it.
std::string fact_text(const RunRecord& run, const std::string& name);
bool fact_is_true(const RunRecord& run, const std::string& name);

// {"node1", "node1", "node2"} as "2 x node1, node2".
std::string with_counts(const std::vector<std::string>& words);

}  // namespace tessera
