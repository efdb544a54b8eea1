#include "jobs/sampled_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "comm/world_settings.h"
#include "core/error.h"
#include "core/host.h"
#include "core/log.h"
#include "jobs/jobs.h"
#include "settings/load.h"
#include "state/model_output.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMonitorJobVariable = "TESSERA_MONITOR_JOB";

// Whether the run is refused because of what lies in its folder, which must then stay as it is.
bool is_refused(const TrainSettings& settings, const Environment& environment) {
  try {
    check_replaces_no_model(settings.output, environment);
  } catch (const Error&) {
    return true;  // the ranks say why
  }
  return false;
}

MemorySamplerOptions options_of_run(const TrainSettings& settings, const Environment& environment) {
  MemorySamplerOptions options = sampler_options(environment);
  options.folder = settings.output.output_dir;
  options.period = settings.monitor.period;
  options.processes.roots = {getpid()};
  return options;
}

// If the logs cannot be opened, the run goes on without them: its own output has the same folder, and says more.
std::unique_ptr<MemorySampler> start_sampler(const MemorySamplerOptions& options) {
  try {
    auto sampler = std::make_unique<MemorySampler>(options);
    sampler->start();
    return sampler;
  } catch (const Error& error) {
    log_warn("--monitor: no memory logs: {}", error.what());
    return nullptr;
  }
}

// mpirun, or its daemon on another node, is the parent of its ranks and has no mark.
std::vector<pid_t> starters_of_rank() {
  const pid_t parent = getppid();
  const std::vector<std::string> starters = {"mpirun", "mpirun.openmpi", "mpiexec", "orterun",
                                             "orted",  "prted",          "prterun"};
  return std::ranges::find(starters, process_name(parent)) == starters.end() ? std::vector<pid_t>{}
                                                                             : std::vector<pid_t>{parent};
}

bool has_several_nodes(const RankEnv& self) {
  if (self.num_nodes) return *self.num_nodes > 1;
  return self.world_size > 1 && self.local_size.value_or(1) < self.world_size;
}

// The same on all nodes, if there are several.
std::string job_of_rank(const fs::path& folder, const RankEnv& self, const Environment& environment) {
  if (has_several_nodes(self) && !environment.find("SLURM_JOB_ID")) {
    for (const char* name : {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"}) {
      if (const auto id = environment.find(name)) return job_as_folder_name(*id);
    }
  }
  return new_memory_job(folder, environment);
}

// Only the command line can ask for monitoring; whoever asks for help or --print_config starts no run.
bool may_ask_for_monitoring(const std::vector<std::string>& words) {
  const auto has = [&](const char* start) {
    return std::ranges::any_of(words, [&](const std::string& word) { return word.starts_with(start); });
  };
  return has("--monitor") && !has("-h") && !has("--help") && !has("--print_config") && !has("--print-config");
}

}  // namespace

std::unique_ptr<MemorySampler> start_sampler_of_rank(TrainSettings& settings, const RankEnv& self,
                                                     const Environment& environment) {
  if (!settings.monitor.is_on || settings.dry_run) return nullptr;
  if (const auto job = environment.find(kMonitorJobVariable)) {
    settings.monitor.job = *job;
    return nullptr;
  }
  if (self.local_rank.value_or(self.rank) != 0 || is_refused(settings, environment)) return nullptr;
  MemorySamplerOptions options = options_of_run(settings, environment);
  options.job = settings.monitor.job = job_of_rank(settings.output.output_dir, self, environment);
  if (has_several_nodes(self)) options.host = host_name();
  for (const pid_t starter : starters_of_rank()) options.processes.roots.push_back(starter);
  return start_sampler(options);
}

std::unique_ptr<MemorySampler> start_sampler_of_launcher(const LaunchedRanks& ranks, const std::string& self,
                                                         Environment& environment) {
  environment.unset(kMonitorJobVariable);  // an outer run's
  const std::vector<std::string>& words = ranks.command;
  if (words.size() < 3 || words[0] != self || words[1] != "train" || !may_ask_for_monitoring(words)) return nullptr;
  LoadedTrainSettings run;
  WorldOptions of_ranks;
  try {
    run = load_train_settings({.jobs = job_traits(),
                               .arguments = {words.begin() + 2, words.end()},
                               .environment = environment,
                               .num_ranks = ranks.num_nodes * ranks.num_local_ranks,
                               .declare_more = [&](Schema& schema) { declare(schema, of_ranks); }});
  } catch (const UsageError&) {
    return nullptr;  // the ranks say why
  }
  if (!run.settings.monitor.is_on || run.settings.dry_run || is_refused(run.settings, environment)) return nullptr;
  MemorySamplerOptions options = options_of_run(run.settings, environment);
  const bool has_name = ranks.num_nodes > 1 && !ranks.run_id.empty() && !environment.find("SLURM_JOB_ID");
  options.job = has_name ? job_as_folder_name(ranks.run_id) : new_memory_job(options.folder, environment);
  if (ranks.num_nodes > 1) options.host = host_name();
  environment.set(kMonitorJobVariable, options.job);
  return start_sampler(options);
}

}  // namespace tessera
