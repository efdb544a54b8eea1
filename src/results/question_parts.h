// What the answers to questions share: choosing runs that may be compared, and writing numbers. For questions.cc and
// the files of the questions alone. (no torch)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/questions.h"

namespace tessera::internal {

using Runs = std::vector<const RunRecord*>;

// Finished runs, and of those with the same facts only the newest.
Runs runs_to_ask(const std::vector<RunRecord>& runs);

// Groups of runs with equal facts of these names, in the order of their first runs.
std::vector<Runs> grouped_by(const Runs& runs, const std::vector<std::string>& facts);
// Sorted by a fact that is a number, without runs that do not have it and without further runs of an equal number.
Runs by_number(const Runs& runs, const std::string& fact);

double number_fact(const RunRecord& run, const std::string& fact);  // 0: it has none
bool offloads(const RunRecord& run);
std::string model_text(const RunRecord& run);         // "bloom-qa, 559,214,592 parameters"
std::string ranks_text(const RunRecord& run);         // "4 ranks on 2 nodes"
std::string percent_text(double now, double before);  // "+12.5 %"

// A figure that all of these runs have: the same one for all, with its name. None: no figure is common to them.
struct CommonFigure {
  std::string name;
  std::vector<double> MiB;  // per run
};
std::optional<CommonFigure> common_peak(const Runs& runs);     // allocated, else used by NVML, else of the memory log
std::optional<CommonFigure> common_average(const Runs& runs);  // used by NVML, else of the memory log

// The questions. Each returns no answer at all where the runs are not of its kind.
std::vector<Answer> lowest_peak(const Runs& runs);
std::vector<Answer> memory_under_weak_scaling(const Runs& runs);
std::vector<Answer> memory_with_more_nodes(const Runs& runs);
std::vector<Answer> sharding_on_one_gpu(const Runs& runs);
std::vector<Answer> share_of_blocks(const Runs& runs);
std::vector<Answer> cost_of_offload(const Runs& runs);
std::vector<Answer> speed_under_weak_scaling(const Runs& runs);
std::vector<Answer> effect_of_pinning(const Runs& runs);
std::vector<Answer> within_against_across_nodes(const Runs& runs);
std::vector<Answer> loss_across_gpu_counts(const Runs& runs);
std::vector<Answer> trainer_against_callback(const Runs& runs);

}  // namespace tessera::internal
