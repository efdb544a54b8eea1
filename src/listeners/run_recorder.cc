#include "listeners/run_recorder.h"

#include <algorithm>

#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "core/text.h"
#include "listeners/step_trace.h"
#include "record/record_file.h"

namespace tessera {

namespace {

constexpr double kSecondsBetweenWrites = 5;
constexpr double kSecondsBetweenTouches = 120;  // a fifth of the silence after which a run counts as killed
constexpr std::size_t kShortestSecret = 6;      // 'true' or '1' would hide half the file
constexpr const char* kHidden = "(set)";

std::string json_escaped(const std::string& text) {
  const std::string quoted = json_text(Json(text));
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

bool is_secret_name(const std::string& name) {
  std::string lower = lower_case(name);
  std::replace(lower.begin(), lower.end(), '-', '_');
  // By whole parts: 'tokenizer_name' and 'num_tokens' are not secrets.
  for (const std::string& part : split(lower, '_')) {
    for (const char* word : {"key", "token", "password", "passwd", "secret", "credential", "credentials"}) {
      if (part.ends_with(word)) return true;
    }
  }
  return false;
}

std::vector<std::string> secret_values_of(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> values;
  for (const auto& [name, value] : environment) {
    if (is_secret_name(name) && value.size() >= kShortestSecret) values.push_back(value);
  }
  return values;
}

RunRecorder::RunRecorder(std::filesystem::path file, RunRecord run, std::vector<std::string> secret_values,
                         std::vector<LogRecord> metrics_before)
    : file_(std::move(file)),
      secret_values_(std::move(secret_values)),
      metrics_before_(std::move(metrics_before)),
      run_(std::move(run)) {
  run_.status = "running";
  for (RecordedSetting& setting : run_.settings) {
    if (is_secret_name(setting.name) && !setting.value.empty()) setting = {setting.name, kHidden, setting.origin};
  }
  // The longest first, so that a secret that holds another is hidden whole.
  std::sort(secret_values_.begin(), secret_values_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

void RunRecorder::on_train_begin(const RunMoment& at) {
  const std::lock_guard lock(mutex_);
  started_ = last_touched_ = at.wall_seconds;
  is_running_ = true;
  run_.started = utc_time(at.wall_seconds);
  run_.total_steps = at.total_steps;
  std::filesystem::remove(file_.parent_path() / kUsageFile);  // of an earlier run in this folder
  metrics_ = std::make_unique<AppendFile>(file_.parent_path() / kMetricsFile, AppendFile::Mode::kReplace);
  for (const LogRecord& record : metrics_before_) {
    if (record.number("step").value_or(0) <= static_cast<double>(at.step)) append(record);
  }
  write(at.wall_seconds);
}

void RunRecorder::on_save(const RunMoment&, const SavedCheckpoint& saved) {
  const std::lock_guard lock(mutex_);
  run_.checkpoints.clear();
  for (const std::filesystem::path& folder : saved.kept) run_.checkpoints.push_back(folder.string());
}

void RunRecorder::on_summary(const RunMoment&, const LogRecord& record) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, value] : record.entries()) run_.summary.set(key, value);
}

void RunRecorder::on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  is_running_ = false;
  run_.status = run_end_name(end);
  run_.exit_reason = reason;
  run_.steps_done = at.step;  // the last log line may be many steps old
  write(at.wall_seconds);
}

void RunRecorder::set_ranks(std::vector<RankRecord> ranks) {
  const std::lock_guard lock(mutex_);
  run_.ranks = std::move(ranks);
  write_file_atomically(file_.parent_path() / kUsageFile, usage_text(run_.ranks));
}

void RunRecorder::set_collectives(const std::vector<FlightTotals>& totals) {
  const std::lock_guard lock(mutex_);
  run_.collectives.clear();
  for (const FlightTotals& each : totals) {
    run_.collectives.push_back({each.operation, each.unit, each.calls, each.bytes, each.seconds});
  }
}

void RunRecorder::set_traces(int num_ranks) {
  const std::lock_guard lock(mutex_);
  run_.traces.clear();
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::filesystem::path name = trace_path({}, rank);
    if (std::filesystem::exists(file_.parent_path() / name)) run_.traces.push_back(name.string());
  }
}

void RunRecorder::set_memory_logs(const MemoryLogs& logs, double start) {
  const std::lock_guard lock(mutex_);
  const auto names = [this](const std::vector<std::filesystem::path>& files) {
    std::vector<std::string> all;
    for (const auto& file : files) all.push_back(file.lexically_proximate(file_.parent_path()).string());
    return all;
  };
  run_.gpu_logs = names(logs.gpu);
  run_.cpu_logs = names(logs.cpu);
  run_.cgroup_logs = names(logs.cgroup);
  run_.host_logs_start_seconds = start > 0 && started_ > 0 ? start - started_ : 0;
}

void RunRecorder::touch(double wall_seconds) {
  const std::lock_guard lock(mutex_);
  if (!is_running_ || wall_seconds - last_touched_ < kSecondsBetweenTouches) return;
  write(wall_seconds);
}

void RunRecorder::add(const RunMoment& at, const LogRecord& record) {
  const std::lock_guard lock(mutex_);
  LogRecord metrics = {{"step", at.step}, {"time", at.wall_seconds}};
  for (const auto& [key, value] : record.entries()) metrics.set(key, value);
  append(metrics);
  if (steady_seconds() - last_written_ >= kSecondsBetweenWrites) write(at.wall_seconds);
}

void RunRecorder::append(const LogRecord& metrics) {
  for (const auto& [key, value] : metrics.entries()) {
    if (metrics.number(key)) run_.last_values.set(key, value);
  }
  if (metrics_) metrics_->append(without_secrets(metrics_line(metrics)));
}

void RunRecorder::write(double wall_seconds) {
  run_.updated = utc_time(wall_seconds);
  last_touched_ = wall_seconds;
  write_file_atomically(file_, without_secrets(run_record_text(run_)));
  last_written_ = steady_seconds();
}

std::string RunRecorder::without_secrets(std::string text) const {
  for (const std::string& secret : secret_values_) {
    const std::string written = json_escaped(secret);
    for (std::size_t at = text.find(written); at != std::string::npos; at = text.find(written, at)) {
      text.replace(at, written.size(), kHidden);
    }
  }
  return text;
}

}  // namespace tessera
