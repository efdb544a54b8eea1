#include "record/record_file.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <limits>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log_record.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

template <typename T, typename Part>
concept Is = std::same_as<std::remove_const_t<T>, Part>;

// The fields of a record and of its parts by their keys. The same lists are written and read (Writer, Reader). must():
// a record without it is refused. may(): it may be absent. old(): it is read in formats 1 and 2, and never written.

void list_fields(auto& at, Is<PartTime> auto& part) {
  at.may("name", part.name);
  at.may("mean_ms", part.mean_ms);
  at.may("std_ms", part.std_ms);
}

void list_fields(auto& at, Is<UsageSeries> auto& series) {
  at.may("period_seconds", series.period_seconds);
  at.may("start_seconds", series.start_seconds);
  at.may("allocated_MB", series.allocated_MB);
  at.may("reserved_MB", series.reserved_MB);
  at.may("used_MB", series.used_MB);
  at.may("resident_MB", series.resident_MB);
  at.may("busy_percent", series.busy_percent);
}

void list_fields(auto& at, Is<RankRecord> auto& rank) {
  at.may("rank", rank.rank);
  at.may("host", rank.host);
  at.may("device", rank.device);
  at.may("numbers", rank.numbers);
  at.may("parts", rank.parts);
  at.old("series", rank.series);
}

void list_fields(auto& at, Is<CollectiveRecord> auto& use) {
  at.may("operation", use.operation);
  at.may("unit", use.unit);
  at.may("calls", use.calls);
  at.may("bytes", use.bytes);
  at.may("seconds", use.seconds);
}

void list_fields(auto& at, Is<RunRecord> auto& run) {
  at.must("status", run.status);
  at.must("exit_reason", run.exit_reason);
  at.must("started", run.started);
  at.must("updated", run.updated);
  at.must("settings", run.settings);
  at.may("facts", run.facts);
  at.must("versions", run.versions);
  at.must("hosts", run.hosts);
  at.must("devices", run.devices);
  at.must("commit", run.commit);
  at.must("command", run.command);
  at.must("total_steps", run.total_steps);
  at.may("steps_done", run.steps_done);
  at.must("checkpoints", run.checkpoints);
  at.old("metrics", run.metrics);
  at.may("last_values", run.last_values);
  at.must("summary", run.summary);
  at.may("planned_memory", run.planned_memory);
  at.may("ranks", run.ranks);
  at.may("collectives", run.collectives);
  at.group("memory_logs", [&](auto& logs) {
    logs.may("gpu", run.gpu_logs);
    logs.may("cpu", run.cpu_logs);
    logs.may("cgroup", run.cgroup_logs);
    logs.may("start_seconds", run.host_logs_start_seconds);
  });
  at.may("traces", run.traces);
}

class Writer {
 public:
  void must(const char* key, const auto& value) { json_[key] = json_from(value); }
  void may(const char* key, const auto& value) { must(key, value); }
  void may(const char* key, const std::optional<std::int64_t>& value) {
    if (value) json_[key] = *value;
  }
  void old(const char*, const auto&) {}
  void group(const char* key, const auto& list) {
    Writer inner;
    list(inner);
    json_[key] = inner.take();
  }
  Json take() { return std::move(json_); }

 private:
  Json json_from(const auto& part) requires requires(Writer& at) { list_fields(at, part); }
  {
    Writer inner;
    list_fields(inner, part);
    return inner.take();
  }
  template <typename Part>
  Json json_from(const std::vector<Part>& parts) {
    Json list = Json::array();
    for (const Part& part : parts) list.push_back(json_from(part));
    return list;
  }
  Json json_from(const LogRecord& record) { return json_of(record); }
  Json json_from(const std::vector<RecordedSetting>& settings) {
    Json object = Json::object();
    for (const RecordedSetting& setting : settings) {
      const bool has_type = !std::holds_alternative<std::monostate>(setting.typed);
      object[setting.name] = {{"value", has_type ? json_of(setting.typed) : Json(setting.value)},
                              {"origin", setting.origin}};
    }
    return object;
  }
  // To a hundredth, and null where there was no reading.
  Json json_from(const std::vector<double>& values) {
    Json series = Json::array();
    for (const double value : values) {
      series.push_back(std::isnan(value) ? Json() : Json(std::round(100 * value) / 100));
    }
    return series;
  }
  Json json_from(const auto& plain) { return plain; }

  Json json_ = Json::object();
};

// As a user writes it. Files of older versions have texts only.
std::string setting_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_null() ? "" : value.dump();
}

class Reader {
 public:
  Reader(const Json& json, const std::string& origin) : json_(json), origin_(origin) {}

  void must(const char* key, auto& value) {
    if (!json_.contains(key)) refuse(fmt::format("\"{}\" is missing", key));
    may(key, value);
  }
  void may(const char* key, auto& value) {
    if (const Json* found = find(key)) read(*found, value, key);
  }
  void old(const char* key, auto& value) { may(key, value); }
  void group(const char* key, const auto& list) {
    if (const Json* found = find(key)) {
      Reader inner(*found, origin_);
      list(inner);
    }
  }

  [[noreturn]] void refuse(const std::string& mistake) const {
    throw UsageError(fmt::format("{}: {}", origin_, mistake));
  }

 private:
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  void read(const Json& json, auto& part, const char*) requires requires(Reader& at) { list_fields(at, part); }
  {
    Reader inner(json, origin_);
    list_fields(inner, part);
  }
  template <typename Part>
  void read(const Json& json, std::vector<Part>& parts, const char* key) {
    for (const Json& each : json) read(each, parts.emplace_back(), key);
  }
  void read(const Json& json, LogRecord& record, const char* key) {
    record = log_record_of(json, fmt::format("{}: {}", origin_, key));
  }
  void read(const Json& json, std::vector<RecordedSetting>& settings, const char*) {
    for (const auto& [name, setting] : json.items()) {
      settings.push_back(
          {name, setting_text(setting.contains("value") ? setting.at("value") : Json()), setting.value("origin", "")});
    }
  }
  void read(const Json& json, std::vector<double>& values, const char*) {
    for (const Json& value : json) {
      values.push_back(value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
    }
  }
  void read(const Json& json, std::optional<std::int64_t>& number, const char* key) {
    read(json, number.emplace(), key);
  }
  template <typename Plain>
  void read(const Json& json, Plain& value, const char* key) {
    try {
      value = json.get<Plain>();
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("\"{}\" has an unexpected type", key));
    }
  }

  const Json& json_;
  const std::string& origin_;
};

// The objects of a file with one per line.
std::vector<Json> read_lines(const fs::path& file) {
  std::vector<Json> objects;
  if (!is_file(file)) return objects;
  for (const std::string& line : split(read_file(file), '\n')) {
    Json object = Json::parse(line, nullptr, false);
    if (object.is_object()) objects.push_back(std::move(object));
  }
  return objects;
}

void read_growing_files(RunRecord& run) {
  const fs::path folder = run.file.parent_path();
  for (const Json& line : read_lines(folder / kMetricsFile)) {
    run.metrics.push_back(log_record_of(line, (folder / kMetricsFile).string()));
  }
  const std::string origin = (folder / kUsageFile).string();
  for (const Json& line : read_lines(folder / kUsageFile)) {
    for (RankRecord& rank : run.ranks) {
      if (rank.rank != line.value("rank", -1)) continue;
      Reader reader(line, origin);
      list_fields(reader, rank.series);
    }
  }
}

int format_of(const Json& json, const std::string& origin) {
  Reader reader(json, origin);
  if (!json.is_object() || !json.contains("format")) {
    reader.refuse("not a run's record: expected an object with \"format\"");
  }
  int format = 0;
  reader.must("format", format);
  if (format < 1 || format > kRunRecordFormat) {
    reader.refuse(
        fmt::format("format {}, but this tessera reads up to format {}: use the version that wrote it, or newer",
                    format, kRunRecordFormat));
  }
  return format;
}

}  // namespace

RunRecord read_run_record(const fs::path& path, RunDetail detail) {
  const fs::path file = fs::is_directory(path) ? path / kRecordFile : path;
  const std::string origin = file.string();
  const Json json = parse_json(read_file(file), origin);
  const int format = format_of(json, origin);
  try {
    RunRecord run;
    run.file = file;
    Reader reader(json, origin);
    list_fields(reader, run);
    if (format >= 3 && detail == RunDetail::kWhole) read_growing_files(run);
    return run;
  } catch (const nlohmann::json::exception&) {  // deep inside; the library's message names no place
    throw UsageError(fmt::format(
        "{}: a value is of another kind than a run's record has there; the file was changed or damaged", origin));
  }
}

std::string run_record_text(const RunRecord& run) {
  Writer writer;
  writer.must("format", std::int64_t{kRunRecordFormat});
  list_fields(writer, run);
  return json_text(writer.take(), 1) + "\n";
}

std::string metrics_line(const LogRecord& metrics) {
  return json_text(json_of(metrics)) + "\n";
}

std::string usage_text(const std::vector<RankRecord>& ranks) {
  std::string text;
  for (const RankRecord& rank : ranks) {
    Writer writer;
    writer.must("rank", rank.rank);
    list_fields(writer, rank.series);
    text += json_text(writer.take()) + "\n";
  }
  return text;
}

}  // namespace tessera
