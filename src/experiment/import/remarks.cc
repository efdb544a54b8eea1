#include "experiment/import/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"

namespace tessera {
namespace {

std::string remark_section(const Remarks& remarks, Remark::Kind kind, const std::string& title) {
  std::size_t place_width = 0, what_width = 0;
  for (const Remark& remark : remarks) {
    if (remark.kind != kind) continue;
    place_width = std::max(place_width, remark.place.size());
    what_width = std::max(what_width, std::min<std::size_t>(remark.what.size(), 36));
  }
  std::string text;
  for (const Remark& remark : remarks) {
    if (remark.kind != kind) continue;
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", remark.place, place_width, remark.what, what_width, remark.why);
  }
  return text.empty() ? "" : fmt::format("\n{}:\n{}", title, text);
}

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

bool is_bandwidth_test(const ShellValues& words) {
  const std::string head = program_of(words);
  return head.ends_with("_perf") || std::any_of(words.begin(), words.end(), [](const ShellValue& word) {
           const std::string text = lower_case(word.text);
           return text.find("nccl-tests") != std::string::npos || text.find("nccl_tests") != std::string::npos;
         });
}

}  // namespace

std::string remarks_text(const Remarks& remarks) {
  return remark_section(remarks, Remark::Kind::kTaken, "Understood") +
         remark_section(remarks, Remark::Kind::kSite, "Belongs to the site file") +
         remark_section(remarks, Remark::Kind::kNotNeeded, "Not needed") +
         remark_section(remarks, Remark::Kind::kComputed, "Left out: only a shell can compute it") +
         remark_section(remarks, Remark::Kind::kLeftOut, "Left out: check whether the run needs it");
}

std::string program_of(const ShellValues& words) {
  return words.empty() ? "" : words[0].text.substr(words[0].text.rfind('/') + 1);
}

CommandFate fate_of(const ShellValues& words) {
  const std::string head = program_of(words);
  if (is_bandwidth_test(words))
    return {FateKind::kGate, RemarkKind::kTaken, head, "gate: `tessera comm-test` before the run"};
  if (head == "nvidia-smi" || head == "psrecord" || head == "nvitop" || head == "gpustat") {
    return {FateKind::kRemark, RemarkKind::kNotNeeded, head, "--monitor writes the same logs; experiments always do"};
  }
  for (const CommandRow& row : command_rows()) {
    if (!row.heads.contains(head)) continue;
    // Only a verb follows the program's name: other words may hold a key.
    const bool shows_all = head == "module" || head == "ml";
    std::string what = head;
    for (std::size_t i = 1; i < words.size() && (shows_all || (i == 1 && is_verb(words[i].text))); ++i) {
      what += " " + printable(words[i].text, 40);
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
