// The parts of the page, in their order. Each gives its HTML, or nothing where it has nothing to show. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/page/page.h"
#include "results/page/run_figures.h"

namespace tessera {

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
std::string page_table(const PageTable& table);
// Runs in groups of one job each, since only these are comparable; the largest group first.
std::vector<std::vector<std::size_t>> runs_by_job(const PageContent& page);

// Runs that differ only in their numbers of ranks and nodes, fewest ranks first: of each setup the newest finished one.
// The first is what speed-ups are against: the baseline that the experiments name, else the run of 'single', else the
// run on the fewest ranks.
struct ScalingSeries {
  std::string name;               // the strategy; runs within a node and across nodes are series of their own
  std::vector<std::size_t> runs;  // places in PageContent::runs
};

// Strong scaling: same strategy, precision and layers, at least two numbers of ranks. Runs of weak_scaling experiments
// (fact 'experiment') are not among them.
std::vector<ScalingSeries> scaling_series(const PageContent& page, const std::vector<std::size_t>& job);
// The runs of weak_scaling experiments, fewest ranks first; empty below two.
std::vector<std::size_t> weak_scaling_runs(const PageContent& page, const std::vector<std::size_t>& job);

// Throughput and speed-up against GPUs with the ideal line; runtime and efficiency under weak scaling.
std::vector<std::string> scaling_plots(const PageContent& page, const std::vector<std::size_t>& job);

}  // namespace tessera
