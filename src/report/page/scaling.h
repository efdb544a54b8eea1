// How runs of one job scale with the number of GPUs. (no torch)
#pragma once

#include <string>
#include <vector>

#include "report/page/sections.h"

namespace tessera {

// Runs that differ only in their number of ranks, fewest ranks first: of each number the newest finished one.
struct ScalingSeries {
  std::string name;               // the strategy
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
