#include "record/run_status.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "core/text.h"

namespace tessera {

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

}  // namespace tessera
