// Memory logs: `tessera monitor` writes those of any program, `tessera analyze-memory` sums up ours, nvidia-smi's and
// psrecord's.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/commands.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output.h"
#include "core/text.h"
#include "launch/monitored_command.h"
#include "launch/output.h"
#include "monitor/memory_analysis.h"
#include "monitor/memory_logs.h"
#include "monitor/memory_sampler.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct AnalyzeMemorySettings {
  std::vector<std::string> words;
  std::string path;
  bool gpu_only = false, cpu_only = false, as_json = false;

  MemoryKinds kinds() const { return gpu_only ? MemoryKinds::kGpu : cpu_only ? MemoryKinds::kCpu : MemoryKinds::kAll; }
};

void declare_analysis(Schema& schema, AnalyzeMemorySettings& s) {
  schema.positionals("JOB_ID|FILES...", &s.words);
  schema.text("path", &s.path, "the folder that holds gpu_memory/ and cpu_memory/", {.preset = "."});
  schema.boolean("gpu_only", &s.gpu_only, "only the GPU logs");
  schema.boolean("cpu_only", &s.cpu_only, "only the CPU logs");
  schema.group("Output");
  schema.boolean("json", &s.as_json, "print one JSON object");
}

// One word that names no file is a job; everything else must be files.
bool names_a_job(const AnalyzeMemorySettings& s) {
  if (s.words.empty()) throw UsageError("tessera analyze-memory takes a job id, or the files of memory logs");
  for (const std::string& word : s.words) {
    if (is_there(word) && !is_folder(word)) continue;
    if (s.words.size() > 1) throw UsageError(fmt::format("{}: no such file; give one job id, or files alone", word));
    if (word.find('/') != std::string::npos) {
      throw UsageError(
          fmt::format("{}: neither a file nor a job id; logs below a folder are read by: tessera "
                      "analyze-memory JOB_ID --path FOLDER",
                      word));
    }
    return true;
  }
  return false;
}

// By what is in them: users name their files as they like.
MemoryLogs sort_files(const AnalyzeMemorySettings& s) {
  MemoryLogs logs;
  for (const std::string& word : s.words) {
    const std::string text = read_file(word);
    if (is_gpu_memory_log(text)) {
      logs.gpu.emplace_back(word);
    } else if (is_cpu_memory_log(text)) {
      logs.cpu.emplace_back(word);
    } else if (is_cgroup_memory_log(text)) {
      logs.cgroup.emplace_back(word);
    } else {
      throw UsageError(
          fmt::format("{}: neither a GPU memory log (nvidia-smi --query-gpu=... --format=csv) nor a CPU memory log "
                      "(psrecord --log); its first line: '{}'",
                      word, printable(text.substr(0, text.find('\n')), 80)));
    }
  }
  if (s.gpu_only) logs.cpu = logs.cgroup = {};
  if (s.cpu_only) logs.gpu = {};
  return logs;
}

// The exit status is 1 if no log could be read.
int run_analysis(Schema&, AnalyzeMemorySettings& s) {
  if (s.gpu_only && s.cpu_only) throw UsageError("--gpu-only and --cpu-only exclude each other; give one");
  const bool by_job = names_a_job(s);
  const MemoryAnalysis analysis =
      by_job ? analyze_memory_of_job(s.path, s.words.front(), s.kinds()) : analyze_memory_logs(sort_files(s));
  if (s.as_json) {
    Json json = Json::object();
    if (by_job) json = {{"job", s.words.front()}, {"path", s.path}};
    json.update(memory_json(analysis));
    print_out(json_text(json, 2) + "\n");
  } else {
    const std::string title =
        by_job ? fmt::format("Analyzing logs for job ID: {} under {}\n", s.words.front(), s.path) : "";
    print_out(title + memory_text(analysis));
  }
  return analysis.is_empty() ? static_cast<int>(ExitStatus::kFailure) : 0;
}

struct MonitorCommandSettings {
  std::chrono::milliseconds interval{};
  std::string path, job;
  std::vector<std::string> command;
};

void declare_monitor(Schema& schema, MonitorCommandSettings& s) {
  schema.duration("interval", &s.interval, "time between two samples", {.preset = "5s", .at_least = 0.01});
  schema.text("path", &s.path, "folder in which gpu_memory/JOB and cpu_memory/JOB are made", {.preset = "."});
  schema.text("job", &s.job, "name of the job's folders; none: SLURM_JOB_ID, else the time", {.preset = ""});
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

// The exit status is the command's: 128 + signal if one ended it, 127 if there is no such program, 126 if it cannot be
// started. The command has this process's input and output; what the monitor itself prints goes to standard error.
int run_monitor(Schema&, MonitorCommandSettings& s) {
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

}  // namespace

Command analyze_memory_command() {
  return with_settings<AnalyzeMemorySettings>({.name = "analyze-memory",
                                               .summary = "peak, average and mode of memory logs, by job or by file",
                                               .has_rank = false},
                                              declare_analysis, run_analysis);
}

Command monitor_command() {
  return with_settings<MonitorCommandSettings>(
      {.name = "monitor",
       .summary = "write memory logs of any program, as nvidia-smi and psrecord do",
       .has_rank = false},
      declare_monitor, run_monitor);
}

}  // namespace tessera
