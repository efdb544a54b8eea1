#include "experiment/scripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kSecondsToSave = 120;  // between the signal and the time limit
constexpr const char* kFinish = "finish() {\n  echo \"$1\" >exit_status\n  exit \"$1\"\n}\n";
// Behind a gate whose output goes through tee.
constexpr const char* kUnlessGatePassed = "status=${PIPESTATUS[0]}\n[ \"$status\" = 0 ] || finish \"$status\"\n";

class JobScript {
 public:
  JobScript(const ResolvedExperiment& experiment, const Site& site, const Program& program, const fs::path& folder,
            bool syncs_wandb)
      : experiment_(experiment), site_(site), program_(program), folder_(folder), syncs_wandb_(syncs_wandb) {}

  std::string text() const { return resources() + head() + surroundings() + functions() + gate() + training() + end(); }

 private:
  std::string of(const char* resource) const { return experiment_.resources.text(resource); }

  // A task is a rank, so that it gets its share of the CPUs that the experiment has per node.
  int cpus_per_rank() const {
    return std::max(1, experiment_.resources.count("cpus_per_task", 1) / experiment_.gpus_per_node());
  }

  std::string resources() const {
    std::string lines = "#!/usr/bin/env bash\n";
    const auto add = [&](const std::string& option) { lines += "#SBATCH " + option + "\n"; };
    const auto add_if = [&](const char* option, const std::string& value) {
      if (!value.empty()) add(fmt::format("--{}={}", option, shell_word(value)));
    };
    add_if("job-name", of("job_name"));
    add_if("output", of("log"));
    add("--open-mode=append");
    add_if("chdir", folder_.string());
    add_if("nodes", of("nodes"));
    add(fmt::format("--ntasks={}", experiment_.num_ranks()));
    add(fmt::format("--ntasks-per-node={}", experiment_.gpus_per_node()));
    add(fmt::format("--cpus-per-task={}", cpus_per_rank()));
    if (experiment_.on_gpus()) {
      add(fmt::format("--gpus={}", experiment_.reserved_gpus_per_node() * experiment_.nodes()));
      add(fmt::format("--gpus-per-node={}", experiment_.reserved_gpus_per_node()));
    }
    add_if("mem", of("memory"));
    add_if("time", of("time"));
    add(fmt::format("--signal=USR1@{}", kSecondsToSave));
    add("--requeue");
    add_if("partition", site_.partition);
    add_if("account", site_.account);
    add_if("qos", site_.qos);
    if (experiment_.on_gpus()) add_if("constraint", site_.constraint);
    add_if("reservation", site_.reservation);
    for (const std::string& line : site_.sbatch) add(line);
    return lines;
  }

  std::string head() const {
    return fmt::format("#\n# {}, preset {}{}. Written by tessera {}; may be edited and given to sbatch.\n",
                       experiment_.name, experiment_.preset, experiment_.scale == Scale::kTiny ? ", scale tiny" : "",
                       program_.version);
  }

  std::string surroundings() const {
    std::string text;
    for (const std::string& module : site_.modules) text += fmt::format("module load {}\n", shell_word(module));
    text += "set -uo pipefail\n\n";  // module's own functions are not written for it
    text += fmt::format("tessera={}\n", shell_word(program_.path));
    text += fmt::format("export TESSERA_EXPERIMENT={}\n", shell_word(experiment_.name));
    text += shell_exports(environment());
    text += fmt::format("export WANDB_DIR=$PWD WANDB_RUN_ID=${{SLURM_JOB_ID}} WANDB_NAME={}_${{SLURM_JOB_ID}}\n",
                        shell_word(of("job_name")));
    text += "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n";
    if (experiment_.on_gpus() && experiment_.reserved_gpus_per_node() > experiment_.gpus_per_node()) {
      text += fmt::format(
          "CUDA_VISIBLE_DEVICES=$(cut -d, -f1-{} <<<\"${{CUDA_VISIBLE_DEVICES:-{}}}\")  # of {} reserved\n"
          "export CUDA_VISIBLE_DEVICES\n",
          experiment_.gpus_per_node(), fmt::join(std::views::iota(0, experiment_.reserved_gpus_per_node()), ","),
          experiment_.reserved_gpus_per_node());
    }
    text +=
        "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
        "MASTER_PORT=$((20000 + SLURM_JOB_ID % 12000))\n"
        "export MASTER_ADDR MASTER_PORT\n"
        "echo \"job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, started at $(date '+%F %T')\"\n\n";
    return text;
  }

  // The site's interface and variables, over the experiment's own.
  Values environment() const {
    Values values = experiment_.environment;
    if (experiment_.on_gpus() && !site_.interface.empty())
      values.set("NCCL_SOCKET_IFNAME", site_.interface, site_.file);
    return values;
  }

  std::string functions() const {
    return fmt::format(
        "# The run's own status, where `tessera experiment status` finds it.\n"
        "{}rm -f exit_status ended.json failure.json\n\n"
        "# A job that waited in the queue runs what was submitted, or nothing.\n"
        "if [ \"$({}\"$tessera\" --version | head -n 1)\" != {} ]; then\n"
        "  echo \"$tessera has changed since this job was submitted: submit it again\" >&2\n"
        "  finish 2\nfi\n\n",
        kFinish, prefix(), shell_word(program_.version_line()));
  }

  std::string prefix() const { return site_.prefix.empty() ? "" : site_.prefix + " "; }

  // The gate's ranks all end by themselves, with one status; a rank of a training that fails ends the others.
  std::string srun(bool ends_together, const std::string& more) const {
    std::string text = fmt::format("srun --kill-on-bad-exit={}", ends_together ? 0 : 1);
    for (const std::string& option : site_.srun) text += " " + option;
    return fmt::format("{}{} {}\"$tessera\"", text, more, prefix());
  }

  std::string gate() const {
    if (!experiment_.has_gate()) return "";
    const std::string log = (fs::path(of("log")).parent_path() / "nccl_$SLURM_JOB_ID.log").string();
    return fmt::format(
        "# The bandwidth gate: one rank per node, on one node all; below {} GB/s (46) or without a figure (44) nothing "
        "is trained.\n"
        "(\n{}  {} {}\n) 2>&1 | tee {}\n{}"
        "TESSERA_GATE_GBPS=$(sed -n 's/^Measured AllReduce BW: \\([0-9.]*\\) GB.*/\\1/p' {})  # for run.json\n"
        "export TESSERA_GATE_GBPS\n\n",
        experiment_.gate.text("min_busbw"), indented(shell_exports(site_.gate_environment)),
        srun(true, experiment_.nodes() > 1 ? " --ntasks=\"$SLURM_JOB_NUM_NODES\" --ntasks-per-node=1" : ""),
        join(experiment_.gate_words(), " "), log, kUnlessGatePassed, log);
  }

  std::string training() const {
    std::vector<std::string> words = experiment_.train_words();
    words.insert(words.begin(), "train");
    return fmt::format(
        "# Memory is logged by the run itself (--monitor), which also prints what came of it.\n"
        "newest_checkpoint() {{ find output -maxdepth 1 -name 'checkpoint-*' 2>/dev/null | sort -V | tail -n 1; }}\n"
        "saved_before=$(newest_checkpoint)\n"
        "resume=()\n"
        "if [ -n \"$saved_before\" ]; then resume=(--resume_from_checkpoint true); fi\n"
        "export TESSERA_FAILURE_FILE=$PWD/failure.json  # the first rank that fails says why\n"
        "status=0\n"
        "{} {} \\\n  ${{resume[@]+\"${{resume[@]}}\"}} || status=$?\n"
        "# srun ends the other ranks, and then gives their status: that of the first is the run's.\n"
        "if [ \"$status\" != 0 ] && grep -qs '\"is_consequence\":false' failure.json; then\n"
        "  status=$(sed -n 's/.*\"exit_status\":\\([0-9]*\\).*/\\1/p' failure.json)\n"
        "fi\n\n",
        srun(false, ""), shell_command(words));
  }

  std::string end() const {
    const std::string sync = syncs_wandb_ ? "wandb sync --include-offline --sync-all || true\n" : "";
    return sync +
           "# 138: USR1 before the time limit. If the run has saved something new, it goes on in its next turn.\n"
           "if [ \"$status\" = 138 ] && [ \"$(newest_checkpoint)\" != \"$saved_before\" ]; then\n"
           "  scontrol requeue \"$SLURM_JOB_ID\" && exit 138\n"
           "fi\n"
           "finish \"$status\"\n";
  }

  const ResolvedExperiment& experiment_;
  const Site& site_;
  const Program& program_;
  const fs::path& folder_;
  bool syncs_wandb_;
};

std::vector<std::string> launched(const ResolvedExperiment& experiment, const std::string& program,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> words = {program};
  if (experiment.num_ranks() > 1) {
    words.insert(words.end(), {"launch", "--nproc_per_node", std::to_string(experiment.num_ranks())});
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// %x is the job's name, %j its id, as in sbatch's --output.
std::string local_log(const ResolvedExperiment& experiment) {
  std::string log = experiment.resources.text("log");
  const auto replace = [&](const std::string& what, const std::string& by) {
    if (const std::size_t at = log.find(what); at != std::string::npos) log.replace(at, what.size(), by);
  };
  replace("%x", experiment.resources.text("job_name"));
  replace("%j", "here");
  return log;
}

std::string local_gate(const ResolvedExperiment& experiment, const std::string& program) {
  if (!experiment.has_gate()) return "";
  return fmt::format(
      "# The bandwidth gate: no training below {} GB/s.\n{} 2>&1 | tee {}\n{}\n", experiment.gate.text("min_busbw"),
      shell_command(launched(experiment, program, experiment.gate_words())),
      shell_word((fs::path(local_log(experiment)).parent_path() / "comm_test.log").string()), kUnlessGatePassed);
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+%@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += word.starts_with("--") ? " \\\n  " : " ";
    text += shell_word(word);
  }
  return text;
}

std::string job_script(const ResolvedExperiment& experiment, const Site& site, const Program& program,
                       const fs::path& folder, bool syncs_wandb) {
  return JobScript(experiment, site, program, folder, syncs_wandb).text();
}

std::vector<std::string> local_words(const ResolvedExperiment& experiment, const std::string& program) {
  std::vector<std::string> train = experiment.train_words();
  train.insert(train.begin(), "train");
  return launched(experiment, program, train);
}

std::string local_script(const ResolvedExperiment& experiment, const Program& program) {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# {}, on this host. Written by tessera {}; may be edited and run again.\n"
      "set -uo pipefail\n"
      "cd \"$(dirname \"${{BASH_SOURCE[0]}}\")\" || exit\n"
      "export TESSERA_EXPERIMENT={}\n{}\n{}\n{}{} 2>&1 | tee {}\nfinish \"${{PIPESTATUS[0]}}\"\n",
      experiment.name, program.version, shell_word(experiment.name), shell_exports(experiment.environment), kFinish,
      local_gate(experiment, program.path), shell_command(local_words(experiment, program.path)),
      shell_word(local_log(experiment)));
}

std::string shell_exports(const Values& environment) {
  std::string text;
  for (const auto& [name, given] : environment) text += fmt::format("export {}={}\n", name, shell_word(given.text));
  return text;
}

}  // namespace tessera
