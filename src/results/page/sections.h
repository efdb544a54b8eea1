// The parts of the page, in their order. Each gives its HTML, or nothing where it has nothing to show. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/page/page.h"
#include "results/page/plot.h"

namespace tessera {

// What the page's words, table and plots share about a run; any other metric by its name.
struct RunFigures {
  const RunRecord* record = nullptr;
  std::string name;           // the run's folder, below the folder that all runs share
  std::string state;          // its status; "killed" where it says running but has been silent for long
  std::string job, strategy;  // the strategy with its offload
  std::optional<double> num_ranks, samples_per_second, runtime_seconds;

  // A metric of record/metrics.h. Memory is that of the rank with the highest peak. Allocated and reserved: torch's
  // allocator; used: NVML, all processes; resident: of a CPU run's process.
  std::optional<double> value(const std::string& metric) const;
  bool is_finished() const { return state == "finished" || state == "stopped_early"; }
  // "cuda" ranks are GPUs; other runs have ranks.
  std::string rank_word() const;
};

std::vector<RunFigures> figures_of(const std::vector<RunRecord>& runs, double now);

// The curves in a run's metrics: every logged value with the step, time and epoch of its log.
enum class CurveX { kStep, kSeconds, kEpoch };

class MetricCurves {
 public:
  // The run must outlive it.
  explicit MetricCurves(const RunRecord& run);

  // Empty where the run never logged it.
  std::vector<Point> curve(const std::string& metric, CurveX x) const;
  double seconds() const { return seconds_; }                          // of the last log, since the run's begin
  const std::vector<Mark>& epoch_ends() const { return epoch_ends_; }  // by seconds

 private:
  double seconds_of(const LogRecord& record) const;  // since the run's begin; nan: not known

  const RunRecord& run_;
  double begin_ = 0, seconds_ = 0;
  std::vector<Mark> epoch_ends_;
};

struct PageContent {
  const PageInput& input;
  std::vector<RunFigures> runs;   // of input.runs, in their order
  std::size_t num_sections = 0;   // runs that have a section of their own
  std::size_t most_points = 300;  // per curve of those sections

  bool has_many() const { return num_sections > 40; }
};

std::string summary_section(const PageContent& page);    // what ran, what was fastest, what failed and why
std::string run_table_section(const PageContent& page);  // sortable, filterable
std::string overview_section(const PageContent& page);   // plots over all runs
inline const char* overview_title(const PageContent& page) {
  return page.runs.size() == 1 ? "Plots" : "Comparison";
}
std::string tables_section(const PageContent& page);
std::string questions_section(const PageContent& page);
std::string settings_section(const PageContent& page);  // those that differ
std::string hardware_section(const PageContent& page);  // hosts, devices, versions, commits
std::string run_sections(const PageContent& page);      // one <details> per run

// The plots of one run.
std::vector<std::string> run_plots(const PageContent& page, std::size_t run);

// Pieces that several sections use.
std::string section(const std::string& id, const std::string& heading, const std::string& content);
std::string figure(const std::string& svg, const std::string& caption = "");
std::string run_link(const PageContent& page, std::size_t run);  // its name; a link where it has a section
std::string badge(const std::string& state);
double largest_y(const std::vector<Series>& all);  // without its sign, to choose an axis by
std::string page_table(const PageTable& table);
// Runs in groups of one job each, since only these are comparable; the largest group first.
std::vector<std::vector<std::size_t>> runs_by_job(const PageContent& page);

// Runs in order of their states, for words and the choice of a filter.
inline constexpr const char* kStates[] = {"finished", "stopped_early", "running", "interrupted", "killed", "failed"};

// Throughput and speed-up against GPUs with the ideal line; runtime and efficiency under weak scaling.
std::vector<std::string> scaling_plots(const PageContent& page, const std::vector<std::size_t>& job);

}  // namespace tessera
