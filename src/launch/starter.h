// Two ways to start the runners of this node: by fork, or through mpirun, so that their ranks can use MPI.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "core/environment.h"
#include "launch/run_folder.h"
#include "launch/settings.h"
#include "launch/wire.h"

namespace tessera {

// Removes the variables of an outer mpirun or srun that would make ranks, or an mpirun started from here, believe that
// they belong to that outer job. With `slurm_too` also Slurm's: with them, Open MPI's mpirun would start its ranks
// through srun. A user's own settings (OMPI_MCA_btl, ...) stay.
Environment without_outer_job(const Environment& environment, bool slurm_too);

// The words that start a runner, without its arguments: the program tessera-minder beside `self`, which starts in
// milliseconds and needs no libtorch; if it is missing, `self` does the same.
std::vector<std::string> runner_command(const std::string& self);

// In addition to the order of the runners.
struct StartRequest {
  Starter starter = Starter::kFork;
  std::vector<std::string> runner;  // runner_command()
  bool more_ranks_than_cpus = false;
  Environment environment;  // of the launcher
  sigset_t signal_mask;     // for the children
};

std::vector<std::string> mpirun_arguments(const std::string& mpirun, const RankOrder& order,
                                          const StartRequest& request, bool is_root);

// What has been started. A runner's own output goes to the launcher's; mpirun's output comes through `mpirun_text`.
struct Started {
  std::vector<pid_t> pids;  // the runners by local rank, or mpirun alone
  Fd mpirun_text;
};

// Throws Error if there is no mpirun, or the system refuses another process.
Started start_runners(const RankOrder& order, const StartRequest& request);
// What mpirun's environment lacks but its ranks should have: the Slurm variables that start_runners hid from mpirun.
std::map<std::string, std::string> variables_to_restore(const Environment& environment, Starter starter);

}  // namespace tessera
