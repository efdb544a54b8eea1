// `tessera runs compare`: what differs between runs, and whether it got worse. (no torch)
//
// Runs with equal settings are repeats and form a group, whose figures are means with their spread. Seeds, output
// folders and names do not make runs different; the commit, the devices and the number of ranks do. Runs of different
// folders that were named are never repeats. The first group is the baseline.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "record/metrics.h"
#include "record/run_record.h"

namespace tessera {

// The runs below one folder that the user named.
struct ComparedSide {
  std::string name;
  std::vector<RunRecord> runs;
  std::vector<std::string> problems = {};  // of records that cannot be read, which no gate passes
};

struct RunGroup {
  std::string name;
  std::vector<const RunRecord*> runs;
  // What makes them what they are, by name: settings, facts, commit and devices.
  std::map<std::string, std::string> traits = {};
  std::set<std::size_t> sides = {};  // below which of the folders they are
  // For the gate: the group of the first folder with the same settings, else the first; that folder is not judged.
  std::size_t baseline = 0;
  bool is_judged = true;
};

struct Spread {
  double mean = 0;
  double deviation = 0;  // standard deviation of the sample; 0 for one run
  int num_runs = 0;
};

struct ComparedMetric {
  Metric metric;
  std::vector<std::optional<Spread>> values;  // per group; none: no run of the group has it

  // (group - baseline) / baseline in %; none: one of them is missing, or the baseline is shown as 0.
  std::optional<double> change_percent(std::size_t group) const;
  // The means are no further apart than the larger of the two deviations.
  bool is_within_spread(std::size_t group) const;
};

struct DifferingSetting {
  std::string name;
  std::vector<std::string> values;  // per group; empty: not set there
};

// What a script allows: none is not checked.
struct GateLimits {
  std::optional<double> slowdown_percent;       // of samples/s: (baseline - group) / baseline
  std::optional<double> memory_growth_percent;  // of the peak: (group - baseline) / baseline
  bool any() const { return slowdown_percent || memory_growth_percent; }
};

struct Comparison {
  std::vector<RunGroup> groups;
  std::vector<DifferingSetting> settings;
  std::vector<ComparedMetric> metrics;
  std::vector<std::string> notes;          // runs that have not finished
  std::vector<std::string> gate_failures;  // empty: the gate is passed, or there is none
};

// `metric`: only this figure, or any name that the runs logged, as run.json or metrics.csv has it; empty: all figures.
// `now`: seconds since 1970. Throws UsageError where there is nothing to compare or no run has the metric. `sides` must
// outlive the result.
Comparison compare_runs(const std::vector<ComparedSide>& sides, const std::string& metric, const GateLimits& limits,
                        double now);

Spread spread_of(const std::vector<double>& values);
// Over the runs of a group that have the figure; none: no run has.
std::optional<Spread> spread_over(const RunGroup& group,
                                  const std::function<std::optional<double>(const RunRecord&)>& figure);

// One sentence per failure. A run that failed or was killed fails the gate, and so do a record that cannot be read
// (`problems`), a status that is not known and a figure that is missing: a gate that cannot judge must not pass.
std::vector<std::string> gate_failures(const std::vector<RunGroup>& groups, const std::vector<std::string>& problems,
                                       const GateLimits& limits, double now);

// "5%" as 5. Throws UsageError naming the option.
double parse_percentage(const std::string& option, const std::string& text);

// For people: of each figure its direction, and per group mean, spread and change; and for programs.
std::string comparison_text(const Comparison& comparison, const GateLimits& limits);
Json comparison_json(const Comparison& comparison, const GateLimits& limits);

}  // namespace tessera
