#include "listeners/run_recorder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/file.h"
#include "core/log_json.h"
#include "core/text.h"
#include "listeners/step_trace.h"

namespace tessera {

namespace {

// A long run's file is large: writing it may take at most a twentieth of the time.
constexpr double kSecondsBetweenWrites = 5;
constexpr double kShareOfTime = 20;
constexpr double kSecondsBetweenTouches = 120;  // a fifth of the silence after which a run counts as killed
constexpr std::size_t kShortestSecret = 6;      // 'true' or '1' would hide half the file
constexpr const char* kHidden = "(set)";

std::string json_escaped(const std::string& text) {
  const std::string quoted = json_text(Json(text));
  return quoted.substr(1, quoted.size() - 2);
}

// To a hundredth, and null where there was no reading.
Json json_of_series(const std::vector<double>& values) {
  Json series = Json::array();
  for (const double value : values) series.push_back(std::isnan(value) ? Json() : Json(std::round(100 * value) / 100));
  return series;
}

Json json_of_rank(const RankRecord& rank) {
  Json parts = Json::array();
  for (const PartTime& part : rank.parts) {
    parts.push_back({{"name", part.name}, {"mean_ms", part.mean_ms}, {"std_ms", part.std_ms}});
  }
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"device", rank.device},
          {"numbers", json_of(rank.numbers)},
          {"parts", std::move(parts)},
          {"series",
           {{"period_seconds", rank.series.period_seconds},
            {"start_seconds", rank.series.start_seconds},
            {"allocated_MB", json_of_series(rank.series.allocated_MB)},
            {"reserved_MB", json_of_series(rank.series.reserved_MB)},
            {"used_MB", json_of_series(rank.series.used_MB)},
            {"resident_MB", json_of_series(rank.series.resident_MB)},
            {"busy_percent", json_of_series(rank.series.busy_percent)}}}};
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

std::string utc_time(double wall_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_seconds)));
}

RunRecorder::RunRecorder(std::filesystem::path file, const RunDescription& description,
                         std::vector<LogRecord> metrics_before)
    : file_(std::move(file)), secret_values_(description.secret_values) {
  Json settings = Json::object();
  for (const RecordedSetting& setting : description.settings) {
    const bool hidden = is_secret_name(setting.name) && !setting.value.empty();
    const bool has_type = !std::holds_alternative<std::monostate>(setting.typed);
    const Json value = hidden ? Json(kHidden) : has_type ? json_of(setting.typed) : Json(setting.value);
    settings[setting.name] = {{"value", value}, {"origin", setting.origin}};
  }
  Json metrics = Json::array();
  for (const LogRecord& record : metrics_before) metrics.push_back(json_of(record));
  json_ = {{"format", kRunRecordFormat},
           {"status", "running"},
           {"exit_reason", ""},
           {"started", ""},
           {"updated", ""},
           {"settings", std::move(settings)},
           {"facts", json_of(description.facts.facts)},
           {"versions", json_of(description.versions)},
           {"hosts", description.hosts},
           {"devices", description.devices},
           {"commit", description.commit},
           {"command", description.command},
           {"total_steps", 0},
           {"checkpoints", Json::array()},
           {"metrics", std::move(metrics)},
           {"summary", Json::object()},
           {"planned_memory", json_of(description.facts.planned_memory)},
           {"ranks", Json::array()},
           {"collectives", Json::array()},
           {"memory_logs", {{"gpu", Json::array()}, {"cpu", Json::array()}, {"cgroup", Json::array()}}},
           {"traces", Json::array()}};
  // The longest first, so that a secret that holds another is hidden whole.
  std::sort(secret_values_.begin(), secret_values_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

void RunRecorder::on_train_begin(const RunMoment& at) {
  const std::lock_guard lock(mutex_);
  started_ = last_touched_ = at.wall_seconds;
  is_running_ = true;
  json_["started"] = utc_time(at.wall_seconds);
  json_["total_steps"] = at.total_steps;
  Json kept = Json::array();
  for (Json& record : json_["metrics"]) {
    if (record.value("step", std::int64_t{0}) <= at.step) kept.push_back(std::move(record));
  }
  json_["metrics"] = std::move(kept);
  write(at.wall_seconds);
}

void RunRecorder::on_log(const RunMoment& at, const LogRecord& record) {
  add(at, record);
}

void RunRecorder::on_metrics(const RunMoment& at, const LogRecord& record) {
  add(at, record);
}

void RunRecorder::on_save(const RunMoment&, const SavedCheckpoint& saved) {
  const std::lock_guard lock(mutex_);
  Json folders = Json::array();
  for (const std::filesystem::path& folder : saved.kept) folders.push_back(folder.string());
  json_["checkpoints"] = std::move(folders);
}

void RunRecorder::on_summary(const RunMoment&, const LogRecord& record) {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, value] : record.entries()) json_["summary"][key] = json_of(value);
}

void RunRecorder::on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  is_running_ = false;
  json_["status"] = run_end_name(end);
  json_["exit_reason"] = reason;
  json_["steps_done"] = at.step;  // the last log line may be many steps old
  write(at.wall_seconds);
}

void RunRecorder::set_ranks(const std::vector<RankRecord>& ranks) {
  const std::lock_guard lock(mutex_);
  Json all = Json::array();
  for (const RankRecord& rank : ranks) all.push_back(json_of_rank(rank));
  json_["ranks"] = std::move(all);
}

void RunRecorder::set_collectives(const std::vector<FlightTotals>& totals) {
  const std::lock_guard lock(mutex_);
  Json all = Json::array();
  for (const FlightTotals& each : totals) {
    all.push_back({{"operation", each.operation},
                   {"unit", each.unit},
                   {"calls", each.calls},
                   {"bytes", each.bytes},
                   {"seconds", each.seconds}});
  }
  json_["collectives"] = std::move(all);
}

void RunRecorder::set_traces(int num_ranks) {
  const std::lock_guard lock(mutex_);
  json_["traces"] = Json::array();
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::filesystem::path name = trace_path({}, rank);
    if (std::filesystem::exists(file_.parent_path() / name)) json_["traces"].push_back(name.string());
  }
}

void RunRecorder::set_memory_logs(const MemoryLogs& logs, double start) {
  const std::lock_guard lock(mutex_);
  const auto names = [this](const std::vector<std::filesystem::path>& files) {
    Json all = Json::array();
    for (const auto& file : files) all.push_back(file.lexically_proximate(file_.parent_path()).string());
    return all;
  };
  json_["memory_logs"] = {{"gpu", names(logs.gpu)}, {"cpu", names(logs.cpu)}, {"cgroup", names(logs.cgroup)}};
  if (start > 0 && started_ > 0) json_["memory_logs"]["start_seconds"] = start - started_;
}

void RunRecorder::touch(double wall_seconds) {
  const std::lock_guard lock(mutex_);
  if (!is_running_ || wall_seconds - last_touched_ < kSecondsBetweenTouches) return;
  write(wall_seconds);
}

void RunRecorder::add(const RunMoment& at, const LogRecord& record) {
  const std::lock_guard lock(mutex_);
  Json entry = {{"step", at.step}, {"time", at.wall_seconds}};
  for (const auto& [key, value] : record.entries()) entry[key] = json_of(value);
  json_["metrics"].push_back(std::move(entry));
  const double pause = std::max(kSecondsBetweenWrites, kShareOfTime * last_duration_);
  if (steady_seconds() - last_written_ >= pause) write(at.wall_seconds);
}

void RunRecorder::write(double wall_seconds) {
  json_["updated"] = utc_time(wall_seconds);
  last_touched_ = wall_seconds;
  const double begin = steady_seconds();
  // Text that is not UTF-8 (a path, a host's message) must not prevent the record from being written.
  write_file_atomically(file_, without_secrets(json_text(json_, 1) + "\n"));
  last_written_ = steady_seconds();
  last_duration_ = last_written_ - begin;
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
