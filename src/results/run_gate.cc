#include "results/run_gate.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/text.h"
#include "record/find_runs.h"
#include "record/metrics.h"
#include "record/run_record.h"

namespace tessera {
namespace {

constexpr double kRounding = 1e-9;  // in %: exactly 5 % slower is allowed by 5%

std::optional<double> mean_over(const RunGroup& group, std::optional<double> (*figure)(const RunRecord&)) {
  std::vector<double> values;
  for (const RunRecord* run : group.runs) {
    if (const std::optional<double> value = figure(*run); value && std::isfinite(*value)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return spread_of(values).mean;
}

void judge_status(const RunRecord& run, double now, std::vector<std::string>& failures) {
  const std::string status = status_of(run, now);
  if (has_finished(run) || status == "running") return;
  const bool is_known = status == "failed" || status == "killed" || status == "interrupted";
  failures.push_back(is_known ? fmt::format("{}: {}", folder_text(run), status_with_reason(run, now))
                              : fmt::format("{}: cannot be judged: its status '{}' is none that tessera knows",
                                            folder_text(run), printable(status, 40)));
}

void judge_speed(const RunGroup& baseline, const RunGroup& group, double limit, std::vector<std::string>& failures) {
  const std::optional<double> before = mean_over(baseline, samples_per_second);
  const std::optional<double> after = mean_over(group, samples_per_second);
  if (!before || !after || *before <= 0) {
    failures.push_back(fmt::format("{}: speed cannot be judged: {} has no samples/s", group.name,
                                   before ? group.name : baseline.name));
    return;
  }
  const double slowdown = 100 * (*before - *after) / *before;
  if (slowdown > limit + kRounding) {
    failures.push_back(fmt::format("{}: {:.3f} samples/s, {:.1f} % slower than {} ({:.3f}); at most {:g} % is allowed",
                                   group.name, *after, slowdown, baseline.name, *before, limit));
  }
}

void judge_memory(const RunGroup& baseline, const RunGroup& group, double limit, std::vector<std::string>& failures) {
  // What the allocator says, or on CPUs the process; never one against the other.
  const bool has_allocated = mean_over(baseline, allocated_peak_MB).has_value();
  const auto figure = has_allocated ? allocated_peak_MB : resident_peak_MB;
  const std::optional<double> before = mean_over(baseline, figure), after = mean_over(group, figure);
  if (!before || !after || *before <= 0) {
    failures.push_back(fmt::format("{}: memory cannot be judged: {} has no {}", group.name,
                                   before ? group.name : baseline.name,
                                   has_allocated ? "peak of allocated GPU memory" : "peak of memory"));
    return;
  }
  const double growth = 100 * (*after - *before) / *before;
  if (growth > limit + kRounding) {
    failures.push_back(fmt::format(
        "{}: {} peaks at {:.0f} MiB, {:.1f} % more than {} ({:.0f}); at most {:g} % is allowed", group.name,
        has_allocated ? "allocated GPU memory" : "process memory", *after, growth, baseline.name, *before, limit));
  }
}

}  // namespace

std::vector<std::string> gate_failures(const std::vector<RunGroup>& groups, const std::vector<std::string>& problems,
                                       const GateLimits& limits, double now) {
  std::vector<std::string> failures;
  if (!limits.any()) return failures;
  if (groups.size() < 2) return {"nothing to judge: all runs have the same settings and are below one folder"};
  for (const std::string& problem : problems) failures.push_back("a run cannot be judged: " + problem);
  for (const RunGroup& group : groups) {
    for (const RunRecord* run : group.runs) judge_status(*run, now, failures);
  }
  for (std::size_t i = 1; i < groups.size(); ++i) {
    if (!groups[i].is_judged) continue;
    const RunGroup& baseline = groups[groups[i].baseline];
    if (limits.slowdown_percent) judge_speed(baseline, groups[i], *limits.slowdown_percent, failures);
    if (limits.memory_growth_percent) judge_memory(baseline, groups[i], *limits.memory_growth_percent, failures);
  }
  return failures;
}

double parse_percentage(const std::string& option, const std::string& text) {
  const std::string_view trimmed = trim(text);
  const std::optional<double> value =
      trimmed.ends_with('%') ? parse_real(trim(trimmed.substr(0, trimmed.size() - 1))) : std::nullopt;
  if (!value || *value < 0) {
    throw UsageError(
        fmt::format("--{} {}: expected a percentage of at least 0 with its sign, such as 5%", option, text));
  }
  return *value;
}

}  // namespace tessera
