#include "cli/monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/monitored_command.h"
#include "config/schema.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/output.h"
#include "core/text.h"
#include "launch/output.h"
#include "monitor/memory_sampler.h"

namespace tessera {
namespace {

struct MonitorCommandSettings {
  std::chrono::milliseconds interval{};
  std::string path, job;
  std::vector<std::string> command;
};

void declare_monitor(Schema& schema, MonitorCommandSettings& s) {
  schema.duration("interval", &s.interval).preset("5s").at_least(0.01).help("time between two samples");
  schema.text("path", &s.path).preset(".").help("folder in which gpu_memory/JOB and cpu_memory/JOB are made");
  schema.text("job", &s.job).preset("").help("name of the job's folders; none: SLURM_JOB_ID, else the time");
  schema.positionals("-- COMMAND...", &s.command, true);
}

void say_monitor(const std::string& line) {
  say_line("tessera monitor: " + line);
}

// Of several tasks of one host (srun, mpirun) only the first samples: it sees the others' processes too.
bool is_first_on_host(const Environment& environment) {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const auto rank = environment.find(name)) return rank == "0";
  }
  return true;
}

MemorySamplerOptions monitor_options(const MonitorCommandSettings& s, const Environment& environment) {
  MemorySamplerOptions options = sampler_options(environment);
  options.folder = s.path;
  options.job = s.job.empty() ? new_memory_job(s.path, environment) : job_as_folder_name(s.job);
  options.host = host_in_log_names(environment);
  options.period = s.interval;
  options.processes.roots = {getpid()};  // adopts what the command leaves
  options.processes.left_out = getpid();
  options.warn = say_monitor;
  return options;
}

int run_monitored(MonitoredCommand& command, const MonitorCommandSettings& s, const Environment& environment) {
  if (!is_first_on_host(environment)) {
    command.start();
    return command.wait();
  }
  MemorySampler sampler(monitor_options(s, environment));
  command.start();
  say_monitor(places_text(sampler));
  sampler.start();
  const int status = command.wait();
  sampler.stop();
  say_line(std::string(trim(sampled_text(sampler))));
  return status;
}

}  // namespace

int run_monitor(const std::vector<std::string>& args) {
  MonitorCommandSettings s;
  Schema schema("tessera monitor", "write memory logs of any program, as nvidia-smi and psrecord do");
  declare_monitor(schema, s);
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  if (s.command.empty()) {
    throw UsageError(
        "tessera monitor: nothing to run; the command follows the options: tessera monitor -- python x.py");
  }
  try {
    MonitoredCommand command(s.command);
    return run_monitored(command, s, Environment::of_process());
  } catch (const CommandError& error) {
    say_monitor(error.what());
    return error.shell_status();
  }
}

}  // namespace tessera
