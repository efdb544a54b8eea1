#include "experiment/import/script_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestSource = 8, kMostSourced = 200;

std::string text_of_script(const fs::path& path) {
  std::string text = read_file(path);
  if (text.find('\0') != std::string::npos)
    refuse_file(path.filename().string(), "expected a script, found a binary file");
  return text;
}

class ScriptReader {
 public:
  ScriptReader(const fs::path& script, const Environment& environment) {
    facts_.path = fs::absolute(script);
    facts_.name = script.filename().string();
    set_known("PWD", facts_.path.parent_path().string());
    for (const char* name : {"HOME", "USER"}) {
      if (const auto value = environment.find(name)) set_known(name, *value);
    }
  }

  ScriptFacts read() {
    const std::string text = text_of_script(facts_.path);
    read_allocation(read_sbatch_lines(text, facts_.name, remarks_), facts_.allocation, remarks_);
    set_slurm_variables();
    walk(text, facts_.name, {});
    separate_helpers();
    return std::move(facts_);
  }

 private:
  void set_known(const std::string& name, const std::string& value) { variables_.set(name, {{value}}, ""); }

  // What Slurm tells a job about itself, as far as the options say.
  void set_slurm_variables() {
    const Allocation& a = facts_.allocation;
    const auto set_count = [&](std::initializer_list<const char*> names, std::optional<int> value) {
      for (const char* name : names) {
        if (value) set_known(name, std::to_string(*value));
      }
    };
    set_count({"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, a.num_nodes());
    set_count({"SLURM_NTASKS", "SLURM_NPROCS"}, a.tasks ? a.tasks : a.num_nodes() * a.num_tasks_per_node());
    set_count({"SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}, a.num_tasks_per_node());
    set_count({"SLURM_CPUS_PER_TASK"}, a.cpus_per_task);
    set_count({"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}, a.num_gpus_per_node());
    set_count({"SLURM_GPUS"}, a.gpus);
    set_known("SLURM_SUBMIT_DIR", facts_.path.parent_path().string());
    if (!a.job_name.empty()) set_known("SLURM_JOB_NAME", a.job_name);
  }

  // `around` holds the srun that starts this text, if any.
  void walk(const std::string& text, const std::string& origin, const BareCommand& around) {
    find_functions(text);
    for (const ShellCommand& command : split_shell(text, origin)) {
      place_ = fmt::format("{}:{}", origin, command.words[0].line);
      read_command(command, around);
    }
  }

  // `name() {`: its body is read where it stands, and calls of it say nothing more.
  void find_functions(const std::string& text) {
    for (const std::string& raw : split(text, '\n')) {
      const std::string_view line = trim(raw);
      const std::size_t bracket = line.find("()");
      if (bracket == std::string_view::npos) continue;
      std::string name(trim(line.substr(0, bracket)));
      if (name.starts_with("function ")) name = trim(std::string_view(name).substr(9));
      if (name.find_first_of(" \t=\"'$") == std::string::npos) functions_.insert(name);
    }
  }

  void note_references(const ShellWord& word) {
    for (const WordPart& part : word.parts) {
      if (part.kind == WordPart::Kind::kText) continue;
      note_names(part.text);
      if (part.fallback) note_names(*part.fallback);
    }
    for (const ShellWord& element : word.elements) note_references(element);
  }
  void note_names(const std::string& text) {
    std::string name;
    for (const char c : text + " ") {
      if (is_in_shell_name(c)) {
        name += c;
      } else if (!name.empty()) {
        facts_.referenced.insert(std::exchange(name, ""));
      }
    }
  }

  void read_command(const ShellCommand& command, const BareCommand& around) {
    for (const ShellWord& word : command.words) note_references(word);
    std::size_t first = 0;
    if (!pass_reserved_words(command, first)) return;
    std::size_t after = first;
    while (after < command.words.size() && command.words[after].assigned()) ++after;
    if (after == command.words.size()) {
      for (std::size_t i = first; i < after; ++i) assign(command.words[i], false);
      return;
    }
    const std::string head = command.words[after].plain().value_or("");
    if (head == "export" || head == "declare" || head == "typeset" || head == "readonly") {
      return read_export(command, after, head);
    }
    ShellValues words;
    for (std::size_t i = first; i < command.words.size(); ++i) {
      for (ShellValue& value : variables_.expand(command.words[i])) words.push_back(std::move(value));
    }
    if (!words.empty()) run(words, around);
  }

  // False: nothing of the command is left. Keeps count of the conditions around it.
  bool pass_reserved_words(const ShellCommand& command, std::size_t& first) {
    static const std::set<std::string> prefixes = {"then", "else", "elif", "do", "!", "{", "if", "while", "until"};
    static const std::set<std::string> openers = {"if", "while", "until", "for", "case", "select"};
    static const std::set<std::string> closers = {"fi", "done", "esac"};
    static const std::set<std::string> alone = {"}", "case", "function", "select"};
    for (; first < command.words.size(); ++first) {
      const std::string word = command.words[first].plain().value_or("");
      if (openers.contains(word)) ++depth_;
      if (closers.contains(word)) depth_ = std::max(0, depth_ - 1);
      if (word == "for" && first + 1 < command.words.size()) {
        const std::string name = command.words[first + 1].plain().value_or("");
        variables_.set(name, {{"$" + name, fmt::format("${} changes within a loop", name)}}, place_);
        return false;
      }
      if (closers.contains(word) || alone.contains(word) || functions_.contains(word)) return false;
      if (!prefixes.contains(word)) return true;
    }
    return false;
  }

  void assign(const ShellWord& word, bool exports) {
    std::string name = *word.assigned();
    const bool appends = name.ends_with('+');
    if (appends) name.pop_back();
    const ShellVariables::Variable* old = variables_.find(name);
    if (depth_ > 0 && old != nullptr && !appends) {
      return remarks_.add(Remark::Kind::kLeftOut, name,
                          fmt::format("it is set again within an if or a loop; the value of {} is kept", old->place));
    }
    ShellValues values = variables_.expand_assigned(word);
    if (appends && old != nullptr) {
      ShellValues joined = old->values;
      if (word.is_array) {
        joined.insert(joined.end(), values.begin(), values.end());
      } else {
        joined[0].append(values[0]);
      }
      values = std::move(joined);
    }
    variables_.set(name, std::move(values), place_);
    if (exports || exports_all_) variables_.mark_exported(name);
  }

  void read_export(const ShellCommand& command, std::size_t at, const std::string& head) {
    bool exports = head == "export";
    for (std::size_t i = at + 1; i < command.words.size(); ++i) {
      const std::string word = command.words[i].plain().value_or("");
      if (command.words[i].assigned()) {
        assign(command.words[i], exports);
      } else if (word.starts_with('-')) {
        exports = exports || (head != "export" && word.find('x') != std::string::npos);
      } else if (exports && !word.empty()) {
        variables_.mark_exported(word);
      }
    }
  }

  void run(const ShellValues& words, const BareCommand& around) {
    BareCommand command = without_wrappers(words);
    if (command.wrapper.empty()) {
      command.wrapper = around.wrapper;
      command.wrapper_options = around.wrapper_options;
    }
    if (!command.container.empty())
      remarks_.add(Remark::Kind::kNotNeeded, command.container, "Tessera is one program without dependencies to pack");
    if (!command.script.empty()) return walk_inner(command.script, command);
    const std::string head = command.head();
    if (head == "source" || head == ".") return read_sourced(command);
    if (head == "cd") return change_folder(command);
    if (head == "set") return read_set(command);
    if (head == "unset") {
      for (std::size_t i = 1; i < command.words.size(); ++i) variables_.unset(command.words[i].text);
      return;
    }
    if (head.ends_with(".sh")) {  // srun bash node.sh, ./run.sh
      const fs::path inner = find_file_of_script(command.words[0].text, variables_, facts_);
      if (!inner.empty()) return walk_file(inner, command);
    }
    if (std::optional<LaunchLine> launch = read_launch_line(command)) {
      launch->place = place_;
      launch->variables = variables_;
      facts_.launches.push_back(std::move(*launch));
      return;
    }
    if (command.words.empty() || functions_.contains(command.head())) return;
    if (is_bandwidth_test(command.words)) read_gate(command);
    remark_on_command(command.words, remarks_);
  }

  // all_reduce_perf -b 4G -e 4G -n 50 -w 20
  void read_gate(const BareCommand& command) {
    facts_.gate.set("enabled", "true", place_);
    const std::map<std::string, std::string> by_option = {{"-b", "size"},
                                                          {"--minbytes", "size"},
                                                          {"-n", "iterations"},
                                                          {"--iters", "iterations"},
                                                          {"-w", "warmup_iterations"},
                                                          {"--warmup_iters", "warmup_iterations"}};
    for (std::size_t i = 0; i + 1 < command.words.size(); ++i) {
      const auto found = by_option.find(command.words[i].text);
      const ShellValue& value = command.words[i + 1];
      if (found != by_option.end() && value.is_known()) facts_.gate.set(found->second, value.text, place_);
    }
    for (const auto& [name, variable] : variables_.all()) {
      const bool is_threshold =
          name.find("THRESHOLD") != std::string::npos || name.find("MIN_BW") != std::string::npos ||
          name.find("MIN_BUSBW") != std::string::npos || name.find("MIN_BANDWIDTH") != std::string::npos;
      if (is_threshold && !variable.values.empty() && parse_real(variable.values[0].text)) {
        facts_.gate.set("min_busbw", variable.values[0].text, variable.place);
      }
    }
  }

  void read_sourced(const BareCommand& command) {
    if (command.words.size() < 2) return;
    const ShellValue& file = command.words[1];
    const fs::path base = fs::path(file.text).filename();
    if (is_activation(file.text)) {
      return remarks_.add(Remark::Kind::kNotNeeded, "source " + printable(base.string(), 60),
                          "Tessera needs no Python environment");
    }
    // "$(dirname "$0")/env_vars.sh" lies beside the script.
    const fs::path found = find_file_of_script(file.is_known() ? file.text : base.string(), variables_, facts_);
    if (!found.empty()) return walk_file(found, {});
    if (!file.is_known())
      return remarks_.add(Remark::Kind::kComputed, "source " + printable(file.text, 60), file.unknown);
    throw UsageError(fmt::format("{}: source {}: there is no such file; put it beside {}, or remove the line", place_,
                                 printable(file.text, 100), facts_.name));
  }

  void walk_file(const fs::path& path, const BareCommand& around) {
    const std::string from = enter_inner();
    remarks_.add(Remark::Kind::kTaken, path.filename().string(), "read");
    walk(text_of_script(path), path.filename().string(), around);
    leave_inner(from);
  }

  void walk_inner(const std::string& text, const BareCommand& around) {
    const std::string from = enter_inner();
    for (const ShellCommand& command : split_shell(text, from)) {
      place_ = from;
      read_command(command, around);
    }
    leave_inner(from);
  }

  std::string enter_inner() {
    if (++source_depth_ > kDeepestSource || ++num_sourced_ > kMostSourced) {
      throw UsageError(fmt::format("{}: scripts source each other more than {} deep or more than {} times", place_,
                                   kDeepestSource, kMostSourced));
    }
    return place_;
  }
  void leave_inner(const std::string& from) {
    --source_depth_;
    place_ = from;
  }

  void change_folder(const BareCommand& command) {
    if (command.words.size() < 2) return;
    const ShellValue& target = command.words[1];
    const fs::path folder = variables_.find("PWD")->values[0].text;
    const fs::path moved = (folder / target.text).lexically_normal();
    std::error_code none;
    if (target.is_known() && fs::is_directory(moved, none)) return set_known("PWD", moved.string());
    remarks_.add(
        target.is_known() ? Remark::Kind::kLeftOut : Remark::Kind::kComputed, "cd " + printable(target.text, 60),
        target.is_known() ? "there is no such folder here; paths are taken from the script's folder" : target.unknown);
  }

  void read_set(const BareCommand& command) {
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const std::string& word = command.words[i].text;
      if (word == "allexport") exports_all_ = command.words[i - 1].text == "-o";
      if (word.starts_with('-') && !word.starts_with("--") && word.find('a') != std::string::npos) exports_all_ = true;
      if (word == "+a") exports_all_ = false;
    }
  }

  // Python programs that are no trainings by their names are left out, unless there is nothing else.
  void separate_helpers() {
    std::vector<LaunchLine> trainings, helpers;
    for (LaunchLine& launch : facts_.launches) {
      const bool is_helper = launch.launcher == "python" && is_helper_program(launch.program);
      (is_helper ? helpers : trainings).push_back(std::move(launch));
    }
    if (trainings.empty()) std::swap(trainings, helpers);
    for (const LaunchLine& helper : helpers) {
      const bool analyses = helper.program.find("analy") != std::string::npos;
      remarks_.all.push_back(
          {analyses ? Remark::Kind::kNotNeeded : Remark::Kind::kLeftOut, helper.place, helper.shown(),
           analyses ? "a run prints what `tessera analyze-memory` says about it" : "not the training, by its name"});
    }
    facts_.launches = std::move(trainings);
  }

  ScriptFacts facts_;
  ShellVariables variables_;
  std::set<std::string> functions_;
  Remarks& remarks_ = facts_.remarks;
  std::string& place_ = remarks_.place;
  int depth_ = 0, source_depth_ = 0, num_sourced_ = 0;
  bool exports_all_ = false;
};

}  // namespace

ScriptFacts read_script(const std::filesystem::path& script, const Environment& environment) {
  return ScriptReader(script, environment).read();
}

fs::path find_file_of_script(const std::string& text, const ShellVariables& variables, const ScriptFacts& script) {
  std::error_code none;
  for (const fs::path& base : {fs::path(variables.find("PWD")->values[0].text), script.path.parent_path()}) {
    if (fs::is_regular_file(base / text, none)) return (base / text).lexically_normal();
  }
  return {};
}

}  // namespace tessera
