#include "launch/starter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "comm/mpi_support.h"
#include "core/error.h"
#include "launch/host_resources.h"

namespace tessera {
namespace {

bool starts_with_any(const std::string& name, std::initializer_list<const char*> prefixes) {
  return std::ranges::any_of(prefixes, [&](const char* prefix) { return name.starts_with(prefix); });
}

bool is_mpi_job_variable(const std::string& name, bool inside_mpirun) {
  if (name.starts_with("PMIX_MCA_")) return false;  // settings, not the job
  if (starts_with_any(name, {"OMPI_COMM_", "OMPI_APP_", "OMPI_FILE_", "OMPI_FIRST_", "OMPI_NUM_", "OMPI_UNIVERSE",
                             "OMPI_COMMAND", "OMPI_ARGV", "PMIX_", "PMI_"})) {
    return true;
  }
  // mpirun passes these to its ranks as if they were a user's settings.
  return inside_mpirun && starts_with_any(name, {"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_pmix",
                                                 "OMPI_MCA_initial_wdir", "OMPI_MCA_shmem_RUNTIME"});
}

bool is_slurm_variable(const std::string& name) {
  return starts_with_any(name, {"SLURM_", "SLURMD_", "SRUN_"});
}

// Forks and executes. Between the two it does only what is safe in a process that had threads: everything is built
// before. `output` is mpirun's; -1, for a runner: the launcher's own.
pid_t spawn(std::vector<std::string> arguments, const Environment& environment, const sigset_t& mask, int output) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment.all()) variables.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& word : arguments) argv.push_back(word.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw Error("cannot start " + arguments[0] + ": " + std::strerror(errno));
  if (pid > 0) return pid;
  setpgid(0, 0);  // Ctrl-C reaches only the launcher, which passes it on
  // mpirun must be signalled when the launcher is gone; a runner sees the end of its line.
  if (output >= 0) prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != launcher) _exit(128 + SIGTERM);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);  // the launcher's ports and lines are not for its children
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

std::string find_mpirun(const Environment& environment) {
  const OpenMpi found = find_open_mpi(environment);
  if (!found.mpirun.empty()) return found.mpirun.string();
  throw UsageError(
      fmt::format("--starter mpirun: no mpirun of Open MPI in PATH; {}; or use --starter fork for ranks that "
                  "do not use MPI",
                  advice_for_open_mpi(found)));
}

Started start_by_fork(const RankOrder& order, const StartRequest& request) {
  const Environment environment = without_outer_job(request.environment, false);
  Started started;
  for (int local_rank = 0; local_rank < order.num_local_ranks; ++local_rank) {
    std::vector<std::string> words = request.runner;
    words.insert(words.end(), {order.folder, std::to_string(local_rank)});
    started.pids.push_back(spawn(std::move(words), environment, request.signal_mask, -1));
  }
  return started;
}

Started start_by_mpirun(const RankOrder& order, const StartRequest& request) {
  const auto arguments = mpirun_arguments(find_mpirun(request.environment), order, request, geteuid() == 0);
  Pipe text;
  fcntl(text.read_end.get(), F_SETFL, O_NONBLOCK);
  const Environment environment = without_outer_job(request.environment, true);
  Started started;
  started.pids.push_back(spawn(arguments, environment, request.signal_mask, text.write_end.get()));
  started.mpirun_text = std::move(text.read_end);
  return started;
}

}  // namespace

Environment without_outer_job(const Environment& environment, bool slurm_too) {
  const bool inside_mpirun = environment.find("OMPI_MCA_orte_hnp_uri").has_value();
  Environment kept = environment;
  for (const auto& [name, value] : environment.all()) {
    if (is_mpi_job_variable(name, inside_mpirun) || (slurm_too && is_slurm_variable(name))) kept.unset(name);
  }
  return kept;
}

std::map<std::string, std::string> variables_to_restore(const Environment& environment, Starter starter) {
  std::map<std::string, std::string> hidden;
  for (const auto& [name, value] : environment.all()) {
    if (starter == Starter::kMpirun && is_slurm_variable(name)) hidden[name] = value;
  }
  return hidden;
}

std::vector<std::string> runner_command(const std::string& self) {
  const std::string beside = (std::filesystem::path(self).parent_path() / "tessera-minder").string();
  if (access(beside.c_str(), X_OK) == 0) return {beside};
  return {self, "__minder"};
}

std::vector<std::string> mpirun_arguments(const std::string& mpirun, const RankOrder& order,
                                          const StartRequest& request, bool is_root) {
  std::vector<std::string> words = {mpirun, "--oversubscribe", "--bind-to", "none"};  // the runners do the pinning
  if (is_root) words.push_back("--allow-run-as-root");
  const auto parameter = [&](const char* name, const char* value) {
    words.insert(words.end(), {"--mca", name, value});
  };
  parameter("plm", "isolated");                     // this host only: no search for ssh or srun
  parameter("orte_abort_on_non_zero_status", "0");  // the launcher ends the others
  // Waiting ranks yield their core to those that have work.
  if (request.more_ranks_than_cpus) parameter("mpi_yield_when_idle", "1");
  words.insert(words.end(), {"-np", std::to_string(order.num_local_ranks)});
  words.insert(words.end(), request.runner.begin(), request.runner.end());
  words.push_back(order.folder);
  return words;
}

Started start_runners(const RankOrder& order, const StartRequest& request) {
  return request.starter == Starter::kFork ? start_by_fork(order, request) : start_by_mpirun(order, request);
}

}  // namespace tessera
