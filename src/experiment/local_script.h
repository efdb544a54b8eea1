// The script that runs an experiment on this host. (no torch)
#pragma once

#include <string>

#include "experiment/resolved.h"
#include "experiment/run_folder.h"

namespace tessera {

// All ranks run here, whatever number of nodes the experiment has. The script works in the folder that it lies in,
// writes what it prints to the log as well, and ends with the run's status.
std::string local_script(const ResolvedExperiment& experiment, const Program& program);

// The words of the run itself: `tessera launch --nproc_per_node N train JOB ...`, or without launch on one rank.
std::vector<std::string> local_words(const ResolvedExperiment& experiment, const std::string& program);

}  // namespace tessera
