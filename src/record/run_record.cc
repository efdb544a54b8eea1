#include "record/run_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <set>

#include "core/log_record.h"
#include "core/text.h"

namespace tessera {
namespace {

std::string text_of(const LogValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return "";
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return python_repr(value);
}

bool is_on(const RunRecord& run, const char* setting) {
  const RecordedSetting* found = run.setting(setting);
  return found != nullptr && found->value == "true";
}

}  // namespace

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
  return last_values.number(metric);
}

std::string utc_time(double wall_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_seconds)));
}

std::optional<double> seconds_of_utc(const std::string& text) {
  std::tm time{};
  char zone = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%c", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
                  &time.tm_min, &time.tm_sec, &zone) != 7 ||
      zone != 'Z') {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(::timegm(&time));
}

std::optional<double> recorded_seconds(const RunRecord& run) {
  const std::optional<double> begin = seconds_of_utc(run.started), end = seconds_of_utc(run.updated);
  if (!begin || !end || *end < *begin) return std::nullopt;
  return *end - *begin;
}

std::string status_of(const RunRecord& run, double now) {
  if (run.status != "running") return run.status;
  const std::optional<double> updated = seconds_of_utc(run.updated);
  return updated && now - *updated > kSilentSeconds ? "killed" : run.status;
}

std::string status_with_reason(const RunRecord& run, double now) {
  const std::string status = status_of(run, now);
  if (status == "killed") return fmt::format("killed: no word since {}", printable(run.updated));
  return run.exit_reason.empty() ? printable(status) : printable(status) + ": " + printable(run.exit_reason, 400);
}

bool has_finished(const RunRecord& run) {
  return run.status == "finished" || run.status == "stopped_early";
}

std::string fact_text(const RunRecord& run, const std::string& name) {
  const LogValue* value = run.facts.find(name);
  return value == nullptr ? "" : text_of(*value);
}

bool fact_is_true(const RunRecord& run, const std::string& name) {
  return fact_text(run, name) == "true";
}

std::string job_text(const RunRecord& run) {
  if (const std::string job = run.text("job"); !job.empty()) return job;
  const auto train = std::ranges::find(run.command, "train");
  return train != run.command.end() && train + 1 != run.command.end() && !(train + 1)->starts_with('-') ? *(train + 1)
                                                                                                        : "";
}

std::string strategy_text(const RunRecord& run) {
  if (const std::string strategy = run.text("strategy"); !strategy.empty()) return strategy;
  const RecordedSetting* setting = run.setting("strategy");
  return setting == nullptr ? "" : setting->value;
}

std::string precision_text(const RunRecord& run) {
  if (const std::string precision = run.text("precision"); !precision.empty()) return precision;
  if (run.setting("bf16") == nullptr && run.setting("fp16") == nullptr) return "";
  return is_on(run, "bf16") ? "bf16" : is_on(run, "fp16") ? "fp16" : "fp32";
}

int num_ranks(const RunRecord& run) {
  if (const std::optional<double> ranks = run.facts.number("ranks")) return static_cast<int>(*ranks);
  return static_cast<int>(run.hosts.size());  // one entry per rank
}

int num_nodes(const RunRecord& run) {
  if (const std::optional<double> nodes = run.facts.number("nodes")) return static_cast<int>(*nodes);
  return static_cast<int>(std::set<std::string>(run.hosts.begin(), run.hosts.end()).size());
}

std::int64_t steps_done(const RunRecord& run) {
  if (run.steps_done) return *run.steps_done;
  for (auto record = run.metrics.rbegin(); record != run.metrics.rend(); ++record) {
    if (const std::optional<double> step = record->number("step")) return static_cast<std::int64_t>(*step);
  }
  return static_cast<std::int64_t>(run.last_values.number("step").value_or(0));
}

std::string counted(std::int64_t number, const std::string& word) {
  return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
}

std::string with_counts(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& word : words) ++value_beside(counts, word);
  std::vector<std::string> parts;
  for (const auto& [word, count] : counts) parts.push_back(count == 1 ? word : fmt::format("{} x {}", count, word));
  return join(parts, ", ");
}

std::string folder_text(const RunRecord& run) {
  std::string folder = run.file.parent_path().lexically_normal().string();
  if (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder.empty() ? "." : folder;
}

}  // namespace tessera
