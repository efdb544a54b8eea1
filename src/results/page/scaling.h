// How runs of one job scale with the number of GPUs. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/page/sections.h"

namespace tessera {

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
