// The memory sampler of a run: who starts it, where its logs lie, what is printed at the end.
//
// One sampler per node: under `tessera launch` it is the launcher's, which outlives the ranks; ranks that srun or
// mpirun started have one in the rank with local rank 0. The launcher tells its ranks by TESSERA_MONITOR_JOB that it
// samples, and under which name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/rank_env.h"
#include "core/environment.h"
#include "monitor/memory_sampler.h"
#include "settings/train_settings.h"

namespace tessera {

// Returns this rank's sampler, started; null if another samples, or none. Sets settings.monitor.job where the launcher
// or this rank samples, so always on rank 0 of a monitored run.
std::unique_ptr<MemorySampler> start_sampler_of_rank(TrainSettings& settings, const RankEnv& self,
                                                     const Environment& environment);

// What `tessera launch` is about to start on this node.
struct LaunchedRanks {
  std::vector<std::string> command;  // of each rank: the program, then its arguments
  int num_nodes = 1, num_local_ranks = 1;
  std::string run_id;
};

// What `tessera launch ... train JOB --monitor` asks for: the run's settings are read as the ranks read them. `self` is
// this program. Null: the command is no monitored training, or the ranks will refuse its settings. Sets the variable in
// `environment`.
std::unique_ptr<MemorySampler> start_sampler_of_launcher(const LaunchedRanks& ranks, const std::string& self,
                                                         Environment& environment);

}  // namespace tessera
