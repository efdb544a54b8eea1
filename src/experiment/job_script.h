// The Slurm script of an experiment: plain, complete, and the same for the same input. (no torch)
//
// A user may read it, edit it and give it to sbatch; nothing of it needs the command that wrote it. It works in the
// run's folder (run_folder.h), measures the bandwidth first where that is asked for, starts the ranks with one srun,
// leaves the run's own exit status, and if the time limit comes it saves, requeues itself and resumes.
#pragma once

#include <filesystem>
#include <string>

#include "experiment/resolved.h"
#include "experiment/run_folder.h"
#include "experiment/site.h"

namespace tessera {

struct ScriptOptions {
  bool syncs_wandb = false;  // `wandb sync` at the end
};

std::string job_script(const ResolvedExperiment& experiment, const Site& site, const Program& program,
                       const std::filesystem::path& folder, const ScriptOptions& options);

}  // namespace tessera
