// Writes a run's record (record_file.h) while it runs: run.json whole and atomically, at the start, during the run (at
// most every few seconds) and at the end; metrics line by line; what the ranks used at the end.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/flight_recorder.h"
#include "core/file.h"
#include "monitor/memory_logs.h"
#include "record/run_record.h"
#include "train/listener.h"

namespace tessera {

// What the job knows of the run before it starts (RunRecord::facts, RunRecord::planned_memory), and the settings that
// it decided where they left the choice to it: strategy, device, ...
struct RunFacts {
  LogRecord facts, planned_memory, decided;
};

// Whether a name suggests a secret value: WANDB_API_KEY, HF_TOKEN, PGPASSWORD, AWS_SECRET_ACCESS_KEY.
bool is_secret_name(const std::string& name);
// Values of such names that are long enough to be told apart from ordinary words.
std::vector<std::string> secret_values_of(const std::map<std::string, std::string>& environment);

class RunRecorder : public TrainListener {
 public:
  // `run`: what is known before it starts. `secret_values` must never appear in the files: keys and tokens, from the
  // environment and elsewhere. `metrics_before`: of the run that this one resumes; those after this run's first step
  // are left out.
  RunRecorder(std::filesystem::path file, RunRecord run, std::vector<std::string> secret_values,
              std::vector<LogRecord> metrics_before = {});

  std::string name() const override { return "run record"; }
  void on_train_begin(const RunMoment& at) override;
  void on_log(const RunMoment& at, const LogRecord& record) override { add(at, record); }
  void on_metrics(const RunMoment& at, const LogRecord& record) override { add(at, record); }
  void on_save(const RunMoment& at, const SavedCheckpoint& saved) override;
  void on_summary(const RunMoment& at, const LogRecord& record) override;
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) override;

  void set_ranks(std::vector<RankRecord> ranks);
  void set_collectives(const std::vector<FlightTotals>& totals);
  void set_traces(int num_ranks);  // one per rank, beside the record, if they exist
  // `start`: when the logs of this host began, in seconds since 1970; 0: not known.
  void set_memory_logs(const MemoryLogs& logs, double start = 0);
  double started() const { return started_; }  // seconds since 1970; 0: the run has not begun

  // Says that the run is alive where it has not logged for a while, so that a long step does not look killed. From any
  // thread, while the others are called on the run's own.
  void touch(double wall_seconds);

 private:
  void add(const RunMoment& at, const LogRecord& record);
  void append(const LogRecord& metrics);
  void write(double wall_seconds);
  std::string without_secrets(std::string text) const;

  std::filesystem::path file_;
  std::vector<std::string> secret_values_;
  std::vector<LogRecord> metrics_before_;
  mutable std::mutex mutex_;  // of what follows
  RunRecord run_;
  std::unique_ptr<AppendFile> metrics_;  // none: the run has not begun
  double started_ = 0, last_written_ = 0, last_touched_ = 0;
  bool is_running_ = false;
};

}  // namespace tessera
