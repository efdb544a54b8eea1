// Each rank's own log file.
#pragma once

#include <filesystem>
#include <string>

#include "core/environment.h"
#include "settings/load.h"
#include "tessera/world.h"
#include "train/listener.h"

namespace tessera {

// <log_dir>/<name>-<job id>/rank-N.log, or <output_dir>/log/rank-N.log without --log_dir. The name is --run_name, else
// Slurm's job name, else the job; the id is Slurm's or the launcher's (none: only the name).
std::filesystem::path rank_log_path(const TrainSettings& settings, const Environment& environment, int rank);

// From now on, this rank's log lines also go to that file. Throws UsageError if --log_dir cannot be written.
void open_rank_log(const LoadedTrainSettings& run, const World& world);

// Writes the trainer's events to the file: log records, checkpoints, the end. Other listeners show them on the screen.
class RankLog : public TrainListener {
 public:
  std::string name() const override { return "rank log"; }
  void on_log(const RunMoment& at, const LogRecord& record) override;
  void on_save(const RunMoment& at, const SavedCheckpoint& saved) override;
  void on_summary(const RunMoment& at, const LogRecord& record) override { on_log(at, record); }
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) override;
};

}  // namespace tessera
