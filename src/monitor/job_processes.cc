#include "monitor/job_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>
#include <system_error>

#include "core/command_output.h"
#include "core/error.h"
#include "core/file.h"
#include "core/host.h"
#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A process shows its parent's environment until it has started its own program: look again, but not for ever.
constexpr int kMostLooks = 3;

}  // namespace

std::string job_mark(const Environment& environment) {
  for (const char* name : {"SLURM_JOB_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
    if (const auto value = environment.find(name)) return fmt::format("{}={}", name, *value);
  }
  // Only our launcher's: torchrun's own id is 'none' unless the user gives one.
  const auto run_id = environment.find("TORCHELASTIC_RUN_ID");
  return environment.find("TESSERA_LAUNCHED") && run_id ? "TORCHELASTIC_RUN_ID=" + *run_id : "";
}

JobUsage JobProcesses::read() {
  const std::vector<Process> all = read_all();
  JobUsage usage;
  for (const Process* process : members(all)) {
    ++usage.num_processes;
    usage.resident_bytes += process->resident_pages * sysconf(_SC_PAGESIZE);
    usage.virtual_bytes += static_cast<std::int64_t>(process->virtual_bytes);
    // One that was not there at the last reading has used all its time since.
    const unsigned long long before = is_first_ ? process->cpu_ticks : known_[process->key].cpu_ticks;
    cpu_ticks_ += process->cpu_ticks - std::min(before, process->cpu_ticks);
  }
  for (const Process& process : all) known_[process.key].cpu_ticks = process.cpu_ticks;
  is_first_ = false;
  usage.cpu_seconds = static_cast<double>(cpu_ticks_) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return usage;
}

std::vector<JobProcesses::Process> JobProcesses::read_all() const {
  std::vector<Process> all;
  std::error_code error;
  for (fs::directory_iterator entry(proc_, error), end; !error && entry != end; entry.increment(error)) {
    Process process;
    if (read_process(entry->path().filename().string(), process)) all.push_back(process);
  }
  return all;
}

bool JobProcesses::read_process(const std::string& name, Process& process) const {
  const auto pid = parse_integer(name);
  if (!pid) return false;
  const std::string stat = read_if_possible(proc_ / name / "stat");
  const std::size_t after_name = stat.rfind(')');  // the program's name may hold anything
  if (after_name == std::string::npos) return false;
  process.key.first = static_cast<pid_t>(*pid);
  unsigned long long user = 0, system = 0;
  char state = 0;
  // state, parent, ..., utime (14), stime (15), ..., starttime (22), vsize (23), rss (24): proc(5)
  const int found = std::sscanf(stat.c_str() + after_name + 1,
                                " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu "
                                "%llu %lld",
                                &state, &process.parent, &user, &system, &process.key.second, &process.virtual_bytes,
                                &process.resident_pages);
  process.cpu_ticks = user + system;
  return found == 7 && state != 'Z';  // of a zombie only its number is left
}

bool JobProcesses::has_mark(Known& known, pid_t pid) const {
  if (known.has_mark || known.num_looks >= kMostLooks || options_.mark.empty()) return known.has_mark;
  ++known.num_looks;
  const std::string variables = '\0' + read_if_possible(proc_ / std::to_string(pid) / "environ", 4 << 20) + '\0';
  known.has_mark = variables.find('\0' + options_.mark + '\0') != std::string::npos;
  return known.has_mark;
}

std::vector<const JobProcesses::Process*> JobProcesses::members(const std::vector<Process>& all) {
  std::map<Key, Known> still_known;
  std::multimap<pid_t, const Process*> by_parent;
  std::vector<const Process*> found;
  std::set<pid_t> is_found;
  const auto add = [&](const Process* process) {
    if (is_found.insert(process->key.first).second) found.push_back(process);
  };
  for (const Process& process : all) {
    Known& known = still_known[process.key] = known_[process.key];
    by_parent.emplace(process.parent, &process);
    const bool is_root = std::ranges::find(options_.roots, process.key.first) != options_.roots.end();
    if (is_root || has_mark(known, process.key.first)) add(&process);
  }
  known_ = std::move(still_known);
  for (std::size_t next = 0; next < found.size(); ++next) {  // grows while it is walked
    const auto [first, last] = by_parent.equal_range(found[next]->key.first);
    for (auto child = first; child != last; ++child) add(child->second);
  }
  std::erase_if(found, [&](const Process* process) { return process->key.first == options_.left_out; });
  return found;
}

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
