// run.json: everything that a table or a question about a run needs, later and elsewhere.
//
// {"format": 1, "status": "running", "exit_reason": "", "started": "2026-11-15T09:00:00Z", "updated": ...,
//  "settings": {"learning_rate": {"value": "5e-05", "origin": "command line"}, ...}, "versions": {...}, "hosts": [...],
//  "devices": [...], "commit": "...", "command": [...], "total_steps": 93, "metrics": [{"step": 10, ...}, ...],
//  "summary": {...}}
// Written whole and atomically: at the start, while the run goes (at most every few seconds), at the end. A status
// 'running' with an old 'updated' is a run that was killed.
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
  // Values that must not be in the file whatever holds them: of keys and tokens, in the environment and elsewhere.
  std::vector<std::string> secret_values;
};

// Whether a name is one whose value nobody wants in a file: WANDB_API_KEY, HF_TOKEN, PGPASSWORD, AWS_SECRET_ACCESS_KEY.
bool is_secret_name(const std::string& name);
// Values of such names, of those long enough to be told from ordinary words.
std::vector<std::string> secret_values_of(const std::map<std::string, std::string>& environment);

class RunRecorder : public TrainListener {
 public:
  // `metrics_before`: of the run that this one resumes; those beyond its first step are left out.
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

// A run's record, read back: what tables and comparisons are made of.
struct RunRecord {
  std::filesystem::path file;
  std::string status;  // running, finished, stopped_early, interrupted, failed
  std::string exit_reason, started, updated, commit;
  std::vector<RecordedSetting> settings;
  LogRecord versions, summary;
  std::vector<std::string> hosts, devices, command, checkpoints;
  std::int64_t total_steps = 0;
  std::vector<LogRecord> metrics;  // each with its step and time

  const RecordedSetting* setting(const std::string& name) const;  // null: the run had none of that name
  // The last value that was logged under this name; none: it never was.
  std::optional<double> last(const std::string& metric) const;
};

// The format that this program writes. A record of a newer one is refused with both numbers.
inline constexpr int kRunRecordFormat = 1;

// A run.json, or a folder with one. Throws UsageError naming the file and what is wrong with it.
RunRecord read_run_record(const std::filesystem::path& path);

// "2026-11-15T09:00:00Z"
std::string utc_time(double wall_seconds);

}  // namespace tessera
