#include "monitor/job_end.h"

#include <fmt/format.h>

#include "core/clock.h"
#include "core/command_output.h"
#include "core/error.h"
#include "core/text.h"

namespace tessera {

std::optional<double> slurm_time_left(const std::string& text) {
  if (text == "UNLIMITED" || text == "NOT_SET") return std::nullopt;
  const auto refuse = [&] {
    return Error(fmt::format("squeue's time left, '{}', is not understood", printable(text, 40)));
  };
  const std::vector<std::string> days = split(text, '-');
  const std::vector<std::string> parts = split(days.back(), ':');
  if (days.size() > 2 || parts.size() < 2 || parts.size() > 3) throw refuse();
  const auto number = [&](const std::string& digits) {
    const auto value = parse_integer(digits);
    if (!value || *value < 0) throw refuse();
    return static_cast<double>(*value);
  };
  double seconds = 0;
  for (const std::string& part : parts) seconds = 60 * seconds + number(part);
  return seconds + (days.size() == 2 ? 86400 * number(days.front()) : 0);
}

std::optional<double> job_time_left(const Environment& environment) {
  if (const auto known = environment.find("SLURM_JOB_END_TIME")) {
    if (const auto end = parse_integer(*known)) return static_cast<double>(*end) - wall_seconds();
  }
  const auto job = environment.find("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  const std::string answer = successful_output({"squeue", "-h", "-j", *job, "-o", "%L"}, std::chrono::seconds(30));
  return slurm_time_left(std::string(trim(split(answer, '\n').front())));  // one line for each part of a job
}

}  // namespace tessera
