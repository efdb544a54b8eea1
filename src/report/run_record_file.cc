// Reads run.json back.
#include <fmt/format.h>

#include "core/error.h"
#include "core/log_json.h"
#include "report/run_record.h"

namespace tessera {
namespace {

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : origin_(file.string()), json_(read_json_file(file)) {
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
  LogRecord record(const char* key) const { return log_record_of(get<Json>(key), fmt::format("{}: {}", origin_, key)); }
  const std::string& origin() const { return origin_; }

 private:
  [[noreturn]] void refuse(const std::string& mistake) const {
    throw UsageError(fmt::format("{}: {}", origin_, mistake));
  }

  std::string origin_;
  Json json_;
};

}  // namespace

RunRecord read_run_record(const std::filesystem::path& path) {
  RunRecord run;
  run.file = std::filesystem::is_directory(path) ? path / "run.json" : path;
  const Reader reader(run.file);
  run.status = reader.get<std::string>("status");
  run.exit_reason = reader.get<std::string>("exit_reason");
  run.started = reader.get<std::string>("started");
  run.updated = reader.get<std::string>("updated");
  run.commit = reader.get<std::string>("commit");
  const Json settings = reader.get<Json>("settings");
  for (const auto& [name, setting] : settings.items()) {
    run.settings.push_back({name, setting.value("value", ""), setting.value("origin", "")});
  }
  run.versions = reader.record("versions");
  run.summary = reader.record("summary");
  run.hosts = reader.get<std::vector<std::string>>("hosts");
  run.devices = reader.get<std::vector<std::string>>("devices");
  run.command = reader.get<std::vector<std::string>>("command");
  run.checkpoints = reader.get<std::vector<std::string>>("checkpoints");
  run.total_steps = reader.get<std::int64_t>("total_steps");
  for (const Json& entry : reader.get<Json>("metrics")) run.metrics.push_back(log_record_of(entry, reader.origin()));
  return run;
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
