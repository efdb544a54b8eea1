#include "experiment/import/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"

namespace tessera {
namespace {

std::string remark_section(const std::vector<Remark>& remarks, Remark::Kind kind, const std::string& title) {
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

struct CommandRow {
  std::set<std::string> heads;
  Remark::Kind kind;
  const char* why;
};

const std::vector<CommandRow> kCommandRows = {
    {{"module", "ml", "spack"}, Remark::Kind::kSite, "modules to load"},
    {{"conda", "mamba", "micromamba", "activate", "deactivate", "virtualenv", "pip", "pip3", "uv", "poetry", "pyenv"},
     Remark::Kind::kNotNeeded,
     "Tessera needs no Python environment"},
    {{"wandb"},
     Remark::Kind::kNotNeeded,
     "W&B runs are written offline with --report_to wandb; `wandb sync` uploads them afterwards"},
    {{"kill", "pkill", "wait", "trap"},
     Remark::Kind::kNotNeeded,
     "monitors end with the run, and its exit status is the job's"},
    {{"scontrol", "squeue", "sacct", "sinfo", "seff", "nslookup", "getent", "ip"},
     Remark::Kind::kNotNeeded,
     "ranks find each other through Slurm's variables"},
    {{"huggingface-cli", "hf"}, Remark::Kind::kLeftOut, "Tessera downloads nothing: fill the cache before the run"},
    {{"cp", "mv", "rsync", "scp", "tar", "unzip", "gunzip", "wget", "curl", "git", "ln"},
     Remark::Kind::kLeftOut,
     "experiments only train: prepare files before the run"},
    {{"rm"}, Remark::Kind::kLeftOut, "experiments remove nothing"},
    {{"tensorboard", "jupyter", "nsys", "ncu", "py-spy", "dcgmi"},
     Remark::Kind::kLeftOut,
     "not started by experiments; --profile_steps writes traces"},
};

const std::set<std::string> kSilentCommands = {
    "echo",     "printf", "date",  "hostname", "pwd",   "ls",    "cat",   "printenv", "tee",   "sleep", "test",
    "[",        "[[",     ":",     "true",     "false", "set",   "shopt", "mkdir",    "touch", "chmod", "exit",
    "return",   "ulimit", "umask", "free",     "df",    "which", "type",  "nvcc",     "lscpu", "grep",  "awk",
    "sed",      "bc",     "head",  "tail",     "sort",  "cut",   "tr",    "wc",       "uniq",  "read",  "break",
    "continue", "shift",  "uname", "whoami",   "id",    "nproc", "find",  "local",    "hash",  "env",   "eval",
    "]",        "]]",     "-f",    "-d",       "-z",    "-n",    "fi",    "done",     "esac",  "}"};

bool is_verb(const std::string& word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
}

bool holds_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

}  // namespace

std::string remarks_text(const std::vector<Remark>& remarks) {
  return remark_section(remarks, Remark::Kind::kTaken, "Understood") +
         remark_section(remarks, Remark::Kind::kSite, "Belongs to the site file") +
         remark_section(remarks, Remark::Kind::kNotNeeded, "Not needed") +
         remark_section(remarks, Remark::Kind::kComputed, "Left out: only a shell can compute it") +
         remark_section(remarks, Remark::Kind::kLeftOut, "Left out: check whether the run needs it");
}

std::string program_of(const ShellValues& words) {
  return words.empty() ? "" : words[0].text.substr(words[0].text.rfind('/') + 1);
}

bool is_bandwidth_test(const ShellValues& words) {
  return program_of(words).ends_with("_perf") || std::any_of(words.begin(), words.end(), [](const ShellValue& word) {
           return holds_any(lower_case(word.text), {"nccl-tests", "nccl_tests"});
         });
}

void remark_on_command(const ShellValues& words, Remarks& remarks) {
  const std::string head = program_of(words);
  Remark made{Remark::Kind::kLeftOut, remarks.place, printable(head, 60), "not understood"};
  const auto row = std::find_if(kCommandRows.begin(), kCommandRows.end(),
                                [&](const CommandRow& each) { return each.heads.contains(head); });
  if (is_bandwidth_test(words)) {
    made.kind = Remark::Kind::kTaken;
    made.why = "gate: `tessera comm-test` before the run";
  } else if (head == "nvidia-smi" || head == "psrecord" || head == "nvitop" || head == "gpustat") {
    made.kind = Remark::Kind::kNotNeeded;
    made.why = "--monitor writes the same logs; experiments always do";
  } else if (row != kCommandRows.end()) {
    made.kind = row->kind;
    made.why = row->why;
    // Only a verb follows the program's name: other words may hold a key.
    const bool shows_all = head == "module" || head == "ml";
    for (std::size_t i = 1; i < words.size() && (shows_all || (i == 1 && is_verb(words[i].text))); ++i) {
      made.what += " " + printable(words[i].text, 40);
    }
  } else if (kSilentCommands.contains(head)) {
    return;
  } else if (head.starts_with("python")) {
    made.why = "no Python is run";
  }
  const bool is_said = std::any_of(remarks.all.begin(), remarks.all.end(), [&](const Remark& other) {
    return other.what == made.what && other.why == made.why;
  });
  if (!is_said) remarks.all.push_back(std::move(made));
}

bool is_activation(const std::string& path) {
  return holds_any(lower_case(path), {"activate", "conda", "bashrc", "profile", "modules", "lmod", "/init/bash"});
}

bool is_helper_program(const std::string& program) {
  return holds_any(lower_case(program.substr(program.rfind('/') + 1)),
                   {"analy", "plot", "download", "prepare", "preprocess", "tokeniz", "parse", "monitor", "summar",
                    "convert", "print", "check_", "collect", "report", "inspect", "make_"});
}

}  // namespace tessera
