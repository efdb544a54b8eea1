// A regression gate: whether a group of runs is slower or needs more memory than the baseline allows.
#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "record/metrics.h"
#include "record/run_record.h"
#include "results/comparison.h"

namespace tessera {
namespace {

constexpr double kRounding = 1e-9;  // in %: exactly 5 % slower is allowed by 5%

void judge_status(const RunRecord& run, double now, std::vector<std::string>& failures) {
  const std::string status = status_of(run, now);
  if (has_finished(run) || status == "running") return;
  const bool is_known = status == "failed" || status == "killed" || status == "interrupted";
  failures.push_back(is_known ? fmt::format("{}: {}", folder_text(run), status_with_reason(run, now))
                              : fmt::format("{}: cannot be judged: its status '{}' is none that tessera knows",
                                            folder_text(run), printable(status, 40)));
}

// A figure of which too much may not be lost or gained.
struct Judged {
  std::optional<double> (*figure)(const RunRecord&);
  double sign;               // 1: growth is bad; -1: loss
  const char *what, *named;  // "speed", "samples/s": what cannot be judged, and what is missing then
  const char* failure;       // of group, figure, change, baseline, its figure and limit
};

void judge(const RunGroup& baseline, const RunGroup& group, const Judged& judged, double limit,
           std::vector<std::string>& failures) {
  const std::optional<Spread> before = spread_over(baseline, judged.figure), after = spread_over(group, judged.figure);
  if (!before || !after || before->mean <= 0) {
    failures.push_back(fmt::format("{}: {} cannot be judged: {} has no {}", group.name, judged.what,
                                   before ? group.name : baseline.name, judged.named));
    return;
  }
  const double change = 100 * judged.sign * (after->mean - before->mean) / before->mean;
  if (change > limit + kRounding) {
    failures.push_back(
        fmt::format(fmt::runtime(judged.failure), group.name, after->mean, change, baseline.name, before->mean, limit));
  }
}

constexpr Judged kSpeed = {samples_per_second, -1, "speed", "samples/s",
                           "{}: {:.3f} samples/s, {:.1f} % slower than {} ({:.3f}); at most {:g} % is allowed"};
// What the allocator says, or on CPUs the process; never one against the other.
constexpr Judged kAllocated = {
    allocated_peak_MB, 1, "memory", "peak of allocated GPU memory",
    "{}: allocated GPU memory peaks at {:.0f} MiB, {:.1f} % more than {} ({:.0f}); at most {:g} % is allowed"};
constexpr Judged kResident = {
    resident_peak_MB, 1, "memory", "peak of memory",
    "{}: process memory peaks at {:.0f} MiB, {:.1f} % more than {} ({:.0f}); at most {:g} % is allowed"};

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
    if (limits.slowdown_percent) judge(baseline, groups[i], kSpeed, *limits.slowdown_percent, failures);
    if (limits.memory_growth_percent) {
      const Judged& memory = spread_over(baseline, allocated_peak_MB) ? kAllocated : kResident;
      judge(baseline, groups[i], memory, *limits.memory_growth_percent, failures);
    }
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
