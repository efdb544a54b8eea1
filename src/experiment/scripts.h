// The scripts that run an experiment: plain bash that a person can read, edit and run; the same for the same input.
// Nothing in them needs the command that wrote them. (no torch)
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/resolved.h"
#include "experiment/run_folder.h"
#include "experiment/site.h"

namespace tessera {

// For sbatch. Works in the run's folder (run_folder.h), measures the bandwidth first where that is asked for, starts
// the ranks with one srun, and ends with the run's own exit status. When the time limit comes, it saves, requeues
// itself and resumes. `syncs_wandb`: `wandb sync` at the end.
std::string job_script(const ResolvedExperiment& experiment, const Site& site, const Program& program,
                       const std::filesystem::path& folder, bool syncs_wandb);

// For this host, on which all ranks run, whatever number of nodes the experiment has. Works in the folder that it lies
// in, writes what it prints to the log as well, and ends with the run's status.
std::string local_script(const ResolvedExperiment& experiment, const Program& program);
// The words of the run itself: `tessera launch --nproc_per_node N train JOB ...`, or without launch on one rank.
std::vector<std::string> local_words(const ResolvedExperiment& experiment, const std::string& program);

std::string shell_word(std::string_view text);  // quoted if it has to be
// An option and its value on each line, continued with backslashes.
std::string shell_command(const std::vector<std::string>& words);
// `export NAME=value` lines.
std::string shell_exports(const Values& environment);

}  // namespace tessera
