#include "monitor/job_end.h"

#include <fmt/format.h>

#include "core/clock.h"
#include "core/command_output.h"
#include "core/error.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {

std::optional<double> slurm_time_left(const std::string& text) {
  if (text == "UNLIMITED" || text == "NOT_SET") return std::nullopt;
  const auto seconds = text.find(':') == std::string::npos ? std::nullopt : slurm_seconds(text);
  if (!seconds) throw Error(fmt::format("squeue's time left, '{}', is not understood", printable(text, 40)));
  return static_cast<double>(*seconds);
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
