#include "record/run_record.h"

#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log_json.h"

namespace tessera {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::filesystem::path& file)
      : origin_(file.string()), json_(parse_json(text, origin_)) {
    if (!json_.is_object() || !json_.contains("format"))
      refuse("not a run's record: expected an object with \"format\"");
    const int format = get<int>("format");
    if (format < 1 || format > kRunRecordFormat) {
      refuse(fmt::format("format {}, but this tessera reads up to format {}: use the version that wrote it, or newer",
                         format, kRunRecordFormat));
    }
  }

  template <typename T>
  T get(const char* key) const {
    if (!json_.contains(key)) refuse(fmt::format("\"{}\" is missing", key));
    try {
      return json_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("\"{}\" has an unexpected type", key));
    }
  }
  const Json& at(const char* key) const {
    if (!json_.contains(key)) refuse(fmt::format("\"{}\" is missing", key));
    return json_.at(key);
  }
  LogRecord record(const char* key) const { return log_record_of(at(key), fmt::format("{}: {}", origin_, key)); }
  const Json& json() const { return json_; }
  const std::string& origin() const { return origin_; }

 private:
  [[noreturn]] void refuse(const std::string& mistake) const {
    throw UsageError(fmt::format("{}: {}", origin_, mistake));
  }

  std::string origin_;
  Json json_;
};

// Keys that format 1 does not have may be absent. Nothing is copied: series are long.
const Json& object_at(const Json& json, const char* key) {
  static const Json none = Json::object();
  return json.contains(key) ? json.at(key) : none;
}

const Json& list_at(const Json& json, const char* key) {
  static const Json none = Json::array();
  return json.contains(key) ? json.at(key) : none;
}

std::vector<double> series_of(const Json& rank, const char* name) {
  std::vector<double> values;
  for (const Json& value : list_at(rank, name)) {
    values.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return values;
}

// As a user writes it. Files of older versions have texts only.
std::string setting_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_null() ? "" : value.dump();
}

RankRecord rank_of(const Json& json, const std::string& origin) {
  RankRecord rank;
  rank.rank = json.value("rank", 0);
  rank.host = json.value("host", "");
  rank.device = json.value("device", "");
  rank.numbers = log_record_of(object_at(json, "numbers"), origin);
  for (const Json& part : list_at(json, "parts")) {
    rank.parts.push_back({part.value("name", ""), part.value("mean_ms", 0.0), part.value("std_ms", 0.0)});
  }
  const Json& series = object_at(json, "series");
  rank.series.period_seconds = series.value("period_seconds", 0.0);
  rank.series.start_seconds = series.value("start_seconds", 0.0);
  rank.series.allocated_MB = series_of(series, "allocated_MB");
  rank.series.reserved_MB = series_of(series, "reserved_MB");
  rank.series.used_MB = series_of(series, "used_MB");
  rank.series.resident_MB = series_of(series, "resident_MB");
  rank.series.busy_percent = series_of(series, "busy_percent");
  return rank;
}

// What format 2 added.
void read_measurements(const Reader& reader, RunRecord& run) {
  const std::string& origin = reader.origin();
  const Json& json = reader.json();
  run.facts = log_record_of(object_at(json, "facts"), origin + ": facts");
  run.planned_memory = log_record_of(object_at(json, "planned_memory"), origin + ": planned_memory");
  for (const Json& rank : list_at(json, "ranks")) run.ranks.push_back(rank_of(rank, origin));
  for (const Json& use : list_at(json, "collectives")) {
    run.collectives.push_back({use.value("operation", ""), use.value("unit", ""), use.value("calls", std::int64_t{0}),
                               use.value("bytes", std::int64_t{0}), use.value("seconds", 0.0)});
  }
  const Json& logs = object_at(json, "memory_logs");
  run.gpu_logs = logs.value("gpu", std::vector<std::string>());
  run.cpu_logs = logs.value("cpu", std::vector<std::string>());
  run.cgroup_logs = logs.value("cgroup", std::vector<std::string>());
  run.host_logs_start_seconds = logs.value("start_seconds", 0.0);
  run.traces = list_at(json, "traces").get<std::vector<std::string>>();
}

RunRecord record_of(const Reader& reader, const std::filesystem::path& file) {
  RunRecord run;
  run.file = file;
  run.status = reader.get<std::string>("status");
  run.exit_reason = reader.get<std::string>("exit_reason");
  run.started = reader.get<std::string>("started");
  run.updated = reader.get<std::string>("updated");
  run.commit = reader.get<std::string>("commit");
  for (const auto& [name, setting] : reader.at("settings").items()) {
    run.settings.push_back(
        {name, setting_text(setting.contains("value") ? setting.at("value") : Json()), setting.value("origin", "")});
  }
  run.versions = reader.record("versions");
  run.summary = reader.record("summary");
  run.hosts = reader.get<std::vector<std::string>>("hosts");
  run.devices = reader.get<std::vector<std::string>>("devices");
  run.command = reader.get<std::vector<std::string>>("command");
  run.checkpoints = reader.get<std::vector<std::string>>("checkpoints");
  run.total_steps = reader.get<std::int64_t>("total_steps");
  if (reader.json().contains("steps_done")) run.steps_done = reader.get<std::int64_t>("steps_done");
  for (const Json& entry : reader.at("metrics")) run.metrics.push_back(log_record_of(entry, reader.origin()));
  read_measurements(reader, run);
  return run;
}

}  // namespace

RunRecord read_run_record(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / "run.json" : path;
  return parse_run_record(read_file(file), file);
}

RunRecord parse_run_record(std::string_view text, const std::filesystem::path& file) {
  const Reader reader(text, file);
  try {
    return record_of(reader, file);
  } catch (const nlohmann::json::exception&) {  // deep inside; the library's message names no place
    throw UsageError(
        fmt::format("{}: a value is of another kind than a run's record has there; the file was changed or "
                    "damaged",
                    reader.origin()));
  }
}

std::string RunRecord::text(const std::string& fact) const {
  const LogValue* value = facts.find(fact);
  const std::string* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : *text;
}

const RecordedSetting* RunRecord::setting(const std::string& name) const {
  for (const RecordedSetting& each : settings) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::optional<double> RunRecord::last(const std::string& metric) const {
  for (auto record = metrics.rbegin(); record != metrics.rend(); ++record) {
    if (const std::optional<double> value = record->number(metric)) return value;
  }
  return std::nullopt;
}

}  // namespace tessera
