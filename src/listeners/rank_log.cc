#include "listeners/rank_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/rank_env.h"
#include "core/error.h"
#include "core/log.h"
#include "listeners/console_text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::string as_file_name(std::string text) {
  std::replace(text.begin(), text.end(), '/', '_');
  return text == "." || text == ".." ? "_" : text;
}

std::string folder_name(const TrainSettings& settings, const Environment& environment) {
  const std::string& run_name = settings.reports.run_name;
  const std::string name = !run_name.empty() ? run_name : environment.find("SLURM_JOB_NAME").value_or(settings.job);
  const std::string id = environment.find("SLURM_JOB_ID").value_or(discover_rank(environment).job_id);
  return as_file_name(id.empty() ? name : fmt::format("{}-{}", name, id));
}

}  // namespace

fs::path rank_log_path(const TrainSettings& settings, const Environment& environment, int rank) {
  const std::string& log_dir = settings.output.log_dir;
  const fs::path folder = log_dir.empty() ? fs::path(settings.output.output_dir) / "log"
                                          : fs::path(log_dir) / folder_name(settings, environment);
  return folder / fmt::format("rank-{}.log", rank);
}

void open_rank_log(const LoadedTrainSettings& run, const World& world) {
  const TrainSettings& settings = run.settings;
  if (settings.dry_run) return;
  try {
    open_log_file(rank_log_path(settings, run.request.environment, world.rank()));
  } catch (const UsageError& error) {
    if (!settings.output.log_dir.empty()) throw UsageError(fmt::format("--log_dir: {}", error.what()));
    log_debug("{}", error.what());  // the output folder is created next, which reports the problem
  }
}

void RankLog::on_log(const RunMoment& at, const LogRecord& record) {
  write_log_file(fmt::format("step {}: {}", at.step, format_log_line(record)));
}

void RankLog::on_save(const RunMoment& at, const SavedCheckpoint& saved) {
  write_log_file(fmt::format("step {}: saved {}", at.step, saved.folder.string()));
}

void RankLog::on_train_end(const RunMoment& at, RunEnd end, const std::string& reason) {
  write_log_file(fmt::format("step {}: {}{}{}", at.step, run_end_name(end), reason.empty() ? "" : ": ", reason));
}

}  // namespace tessera
