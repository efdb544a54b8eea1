#include "monitor/job_end.h"

#include <ctime>

#include "core/command_output.h"
#include "core/text.h"

namespace tessera {

std::optional<double> slurm_time(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  parts.tm_isdst = -1;  // as the date says
  const std::time_t seconds = std::mktime(&parts);
  if (seconds < 0) return std::nullopt;
  return static_cast<double>(seconds);
}

std::optional<double> job_end_time(const Environment& environment) {
  if (const auto known = environment.find("SLURM_JOB_END_TIME")) {
    if (const auto seconds = parse_integer(*known)) return static_cast<double>(*seconds);
  }
  const auto job = environment.find("SLURM_JOB_ID");
  if (!job) return std::nullopt;
  return slurm_time(
      std::string(trim(successful_output({"squeue", "-h", "-j", *job, "-o", "%e"}, std::chrono::seconds(30)))));
}

}  // namespace tessera
