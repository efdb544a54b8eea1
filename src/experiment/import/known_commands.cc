#include "experiment/import/known_commands.h"

#include <algorithm>
#include <set>

#include "core/text.h"

namespace tessera {
namespace {

using FateKind = CommandFate::Kind;
using RemarkKind = Remark::Kind;

struct CommandRow {
  std::set<std::string> heads;
  RemarkKind kind;
  const char* why;
};

const std::vector<CommandRow>& command_rows() {
  static const std::vector<CommandRow> rows = {
      {{"module", "ml", "spack"}, RemarkKind::kSite, "modules to load"},
      {{"conda", "mamba", "micromamba", "activate", "deactivate", "virtualenv", "pip", "pip3", "uv", "poetry", "pyenv"},
       RemarkKind::kNotNeeded,
       "Tessera needs no Python environment"},
      {{"wandb"},
       RemarkKind::kNotNeeded,
       "W&B runs are written offline with --report_to wandb; `wandb sync` uploads them afterwards"},
      {{"kill", "pkill", "wait", "trap"},
       RemarkKind::kNotNeeded,
       "monitors end with the run, and its exit status is the job's"},
      {{"scontrol", "squeue", "sacct", "sinfo", "seff", "nslookup", "getent", "ip"},
       RemarkKind::kNotNeeded,
       "ranks find each other through Slurm's variables"},
      {{"huggingface-cli", "hf"}, RemarkKind::kLeftOut, "Tessera downloads nothing: fill the cache before the run"},
      {{"cp", "mv", "rsync", "scp", "tar", "unzip", "gunzip", "wget", "curl", "git", "ln"},
       RemarkKind::kLeftOut,
       "experiments only train: prepare files before the run"},
      {{"rm"}, RemarkKind::kLeftOut, "experiments remove nothing"},
      {{"tensorboard", "jupyter", "nsys", "ncu", "py-spy", "dcgmi"},
       RemarkKind::kLeftOut,
       "not started by experiments; --profile_steps writes traces"},
  };
  return rows;
}

const std::set<std::string>& silent_commands() {
  static const std::set<std::string> silent = {
      "echo",     "printf", "date",  "hostname", "pwd",   "ls",    "cat",   "printenv", "tee",   "sleep", "test",
      "[",        "[[",     ":",     "true",     "false", "set",   "shopt", "mkdir",    "touch", "chmod", "exit",
      "return",   "ulimit", "umask", "free",     "df",    "which", "type",  "nvcc",     "lscpu", "grep",  "awk",
      "sed",      "bc",     "head",  "tail",     "sort",  "cut",   "tr",    "wc",       "uniq",  "read",  "break",
      "continue", "shift",  "uname", "whoami",   "id",    "nproc", "find",  "local",    "hash",  "env",   "eval",
      "]",        "]]",     "-f",    "-d",       "-z",    "-n",    "fi",    "done",     "esac",  "}"};
  return silent;
}

bool is_verb(const std::string& word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
}

bool is_bandwidth_test(const BareCommand& command) {
  const std::string head = command.head();
  return head.ends_with("_perf") || std::any_of(command.words.begin(), command.words.end(), [](const ShellValue& word) {
           const std::string text = lower_case(word.text);
           return text.find("nccl-tests") != std::string::npos || text.find("nccl_tests") != std::string::npos;
         });
}

}  // namespace

CommandFate fate_of(const BareCommand& command) {
  const std::string head = command.head();
  if (is_bandwidth_test(command))
    return {FateKind::kGate, RemarkKind::kTaken, head, "gate: `tessera comm-test` before the run"};
  if (head == "nvidia-smi" || head == "psrecord" || head == "nvitop" || head == "gpustat") {
    return {FateKind::kMonitor, RemarkKind::kNotNeeded, head, "--monitor writes the same logs; experiments always do"};
  }
  for (const CommandRow& row : command_rows()) {
    if (!row.heads.contains(head)) continue;
    // Only a verb follows the program's name: other words may hold a key.
    const bool shows_all = head == "module" || head == "ml";
    std::string what = head;
    for (std::size_t i = 1; i < command.words.size() && (shows_all || (i == 1 && is_verb(command.words[i].text)));
         ++i) {
      what += " " + printable(command.words[i].text, 40);
    }
    return {FateKind::kRemark, row.kind, what, row.why};
  }
  if (silent_commands().contains(head)) return {FateKind::kSilent, RemarkKind::kNotNeeded, head, ""};
  if (head.starts_with("python")) return {FateKind::kRemark, RemarkKind::kLeftOut, head, "no Python is run"};
  return {FateKind::kRemark, RemarkKind::kLeftOut, printable(head, 60), "not understood"};
}

bool is_activation(const std::string& path) {
  static const std::vector<std::string> hints = {"activate", "conda", "bashrc",    "profile",
                                                 "modules",  "lmod",  "/init/bash"};
  const std::string lower = lower_case(path);
  return std::any_of(hints.begin(), hints.end(),
                     [&](const auto& hint) { return lower.find(hint) != std::string::npos; });
}

bool is_helper_program(const std::string& program) {
  static const std::vector<std::string> hints = {"analy",   "plot",    "download", "prepare", "preprocess", "tokeniz",
                                                 "parse",   "monitor", "summar",   "convert", "print",      "check_",
                                                 "collect", "report",  "inspect",  "make_"};
  const std::string name = lower_case(program.substr(program.rfind('/') + 1));
  return std::any_of(hints.begin(), hints.end(),
                     [&](const auto& hint) { return name.find(hint) != std::string::npos; });
}

}  // namespace tessera
