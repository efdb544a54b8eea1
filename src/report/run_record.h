// run.json: everything that tables and questions about a run need later.
//
// {"format": 1, "status": "running", "exit_reason": "", "started": "2026-11-15T09:00:00Z", "updated": ...,
//  "settings": {"learning_rate": {"value": "5e-05", "origin": "command line"}, ...}, "versions": {...}, "hosts": [...],
//  "devices": [...], "commit": "...", "command": [...], "total_steps": 93, "metrics": [{"step": 10, ...}, ...],
//  "summary": {...}}
// Written whole and atomically: at the start, during the run (at most every few seconds) and at the end. A status
// 'running' with an old 'updated' means that the run was killed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "train/listener.h"

namespace tessera {

struct RecordedSetting {
  std::string name, value, origin;
};

struct RunDescription {
  std::vector<RecordedSetting> settings;
  LogRecord versions;  // tessera, torch, cuda, nccl, ...
  std::vector<std::string> hosts, devices, command;
  std::string commit;
  // Values that must never appear in the file: keys and tokens, from the environment and elsewhere.
  std::vector<std::string> secret_values;
};

// Whether a name suggests a secret value: WANDB_API_KEY, HF_TOKEN, PGPASSWORD, AWS_SECRET_ACCESS_KEY.
bool is_secret_name(const std::string& name);
// Values of such names that are long enough to be told apart from ordinary words.
std::vector<std::string> secret_values_of(const std::map<std::string, std::string>& environment);

class RunRecorder : public TrainListener {
 public:
  // `metrics_before`: of the run that this one resumes; those after this run's first step are left out.
  RunRecorder(std::filesystem::path file, const RunDescription& description,
              std::vector<LogRecord> metrics_before = {});

  std::string name() const override { return "run record"; }
  void on_train_begin(const RunMoment& at) override;
  void on_log(const RunMoment& at, const LogRecord& record) override;
  void on_metrics(const RunMoment& at, const LogRecord& record) override;
  void on_save(const RunMoment& at, const SavedCheckpoint& saved) override;
  void on_summary(const RunMoment& at, const LogRecord& record) override;
  void on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) override;

 private:
  void add(const RunMoment& at, const LogRecord& record);
  void write(const RunMoment& at);
  std::string without_secrets(std::string text) const;

  std::filesystem::path file_;
  std::vector<std::string> secret_values_;
  Json json_;
  double last_written_ = 0, last_duration_ = 0;
};

// A run's record, read back for tables and comparisons.
struct RunRecord {
  std::filesystem::path file;
  std::string status;  // running, finished, stopped_early, interrupted, failed
  std::string exit_reason, started, updated, commit;
  std::vector<RecordedSetting> settings;
  LogRecord versions, summary;
  std::vector<std::string> hosts, devices, command, checkpoints;
  std::int64_t total_steps = 0;
  std::vector<LogRecord> metrics;  // each with its step and time

  const RecordedSetting* setting(const std::string& name) const;  // null: the run had no such setting
  // The last value that was logged under this name; none: never logged.
  std::optional<double> last(const std::string& metric) const;
};

// The format that this program writes. A record in a newer format is refused; the message names both.
inline constexpr int kRunRecordFormat = 1;

// A run.json, or a folder with one. Throws UsageError naming the file and what is wrong with it.
RunRecord read_run_record(const std::filesystem::path& path);

// "2026-11-15T09:00:00Z"
std::string utc_time(double wall_seconds);

}  // namespace tessera
