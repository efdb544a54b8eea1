// The metrics of a run (record/metrics.h) that the page's words, table and plots share. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/run_record.h"

namespace tessera {

struct RunFigures {
  const RunRecord* record = nullptr;
  std::string name;   // the run's folder, below the folder that all runs share
  std::string state;  // its status; "killed" where it says running but has been silent for long
  std::string job, strategy;
  std::optional<double> num_ranks, samples_per_second, runtime_seconds, train_loss, eval_loss, last_step;
  // Of the rank with the highest peak. Allocated and reserved: torch's allocator; used: NVML, all processes.
  std::optional<double> allocated_peak_MB, allocated_mean_MB, reserved_peak_MB, used_peak_MB, used_mean_MB;
  std::optional<double> host_peak_MB, host_mean_MB;  // of a CPU run: the process's resident memory
  std::optional<double> busy_mean_percent;

  bool is_finished() const { return state == "finished" || state == "stopped_early"; }
  // "cuda" ranks are GPUs; other runs have ranks.
  std::string rank_word() const;
};

std::vector<RunFigures> figures_of(const std::vector<RunRecord>& runs, double now);

// What a run's settings and facts call it, for groups of runs that may be compared: strategy with its offload.
std::string strategy_label(const RunRecord& run);

}  // namespace tessera
