#include "experiment/import/launch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"

namespace tessera {
namespace {

using FlagNames = std::set<std::string>;

// "NAME" of NAME=value; empty for other words.
std::string assigned_name(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || !begins_shell_name(word[0])) return "";
  const std::string name = word.substr(0, equals);
  return std::all_of(name.begin(), name.end(), is_in_shell_name) ? name : "";
}

class WrapperReader {
 public:
  explicit WrapperReader(const ShellValues& words) : words_(words) {
    for (const ShellValue& word : words) texts_.push_back(word.text);
  }

  BareCommand read() {
    while (at_ < words_.size() && pass_wrapper()) {
    }
    if (command_.script.empty()) command_.words.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    return std::move(command_);
  }

 private:
  const std::string& text() const { return texts_[at_]; }
  bool sees_option() const { return at_ < texts_.size() && texts_[at_].size() > 1 && texts_[at_][0] == '-'; }

  // Options of which these take the next word.
  void pass_options(const FlagNames& with_value) {
    while (sees_option()) {
      const bool takes_next = with_value.contains(text());
      at_ += takes_next ? 2 : 1;
    }
    at_ = std::min(at_, texts_.size());
  }

  bool pass_wrapper() {
    const std::string name = program_of({words_[at_]});
    if (const std::string variable = assigned_name(text()); !variable.empty()) {
      ShellValue value = words_[at_++];
      value.text.erase(0, variable.size() + 1);
      command_.variables.emplace_back(variable, std::move(value));
      return true;
    }
    if (name == "srun") {
      ++at_;
      command_.wrapper = "srun";
      for (SbatchOption& option : take_slurm_options(texts_, at_))
        command_.wrapper_options.push_back(std::move(option));
      return true;
    }
    if (name == "mpirun" || name == "mpiexec" || name == "orterun") return pass_mpirun();
    if (name == "exec" || name == "time" || name == "nohup" || name == "command" || name == "sudo" || name == "env" ||
        name == "nice" || name == "stdbuf" || name == "numactl" || name == "taskset") {
      ++at_;
      pass_options({"-n", "-u", "-c", "-N", "-m", "-i", "-o", "-e"});
      return true;
    }
    if (name == "timeout") {
      ++at_;
      pass_options({"-k", "-s"});
      at_ = std::min(at_ + 1, texts_.size());  // the duration
      return true;
    }
    if (name == "singularity" || name == "apptainer") return pass_container(name);
    if ((name == "conda" || name == "mamba") && at_ + 1 < texts_.size() && texts_[at_ + 1] == "run") {
      at_ += 2;
      pass_options({"-n", "-p", "--name", "--prefix", "--cwd"});
      return true;
    }
    return name == "bash" || name == "sh" ? pass_shell() : false;
  }

  bool pass_mpirun() {
    command_.wrapper = "mpirun";
    for (++at_; sees_option();) {
      const std::string option = text();
      if ((option == "-np" || option == "-n" || option == "--np") && at_ + 1 < texts_.size()) {
        command_.wrapper_options.push_back({"ntasks", texts_[at_ + 1]});
      }
      const FlagNames alone = {"--allow-run-as-root", "--oversubscribe", "--tag-output", "--display-map", "-v", "-q"};
      at_ += option == "--mca" || option == "-mca"                             ? 3
             : alone.contains(option) || option.find('=') != std::string::npos ? 1
                                                                               : 2;
    }
    at_ = std::min(at_, texts_.size());
    return true;
  }

  bool pass_container(const std::string& name) {
    command_.container = name;
    at_ = std::min(at_ + 2, texts_.size());  // exec or run
    pass_options({"-B", "--bind", "--env", "--env-file", "-H", "--home", "--pwd", "-W", "--workdir", "--overlay"});
    at_ = std::min(at_ + 1, texts_.size());  // the image
    return true;
  }

  // bash -c 'commands' or bash script.sh
  bool pass_shell() {
    for (++at_; sees_option(); ++at_) {
      if (text().find('c') == std::string::npos || text().starts_with("--")) continue;
      if (at_ + 1 < texts_.size()) command_.script = texts_[at_ + 1];
      at_ = texts_.size();
      return false;
    }
    return false;
  }

  const ShellValues& words_;
  std::vector<std::string> texts_;
  std::size_t at_ = 0;
  BareCommand command_;
};

class LaunchReader {
 public:
  explicit LaunchReader(const BareCommand& command) : words_(command.words) { line_.command = command; }

  std::optional<LaunchLine> read() {
    const std::string head = line_.command.head();
    ++at_;
    bool starts = false;
    if (head.starts_with("python")) starts = read_python();
    if (head == "torchrun" || head == "deepspeed") starts = read_launcher(head);
    if (head == "accelerate" && next() == "launch") starts = read_launcher(head);
    return starts ? std::optional(std::move(line_)) : std::nullopt;
  }

 private:
  bool at_end() const { return at_ >= words_.size(); }
  std::string next() { return at_end() ? "" : words_[at_++].text; }

  bool read_python() {
    line_.launcher = "python";
    while (!at_end() && words_[at_].text.starts_with('-')) {
      const std::string option = next();
      if (option == "-c" || option == "-") return false;
      if (option == "-X" || option == "-W") next();
      if (option == "-m") return read_module(next());
    }
    return take_program();
  }

  bool read_module(const std::string& module) {
    if (module == "torch.distributed.run" || module == "torch.distributed.launch") return read_launcher("torchrun");
    if (module.starts_with("deepspeed")) return read_launcher("deepspeed");
    if (module == "accelerate.commands.launch") return read_launcher("accelerate");
    if (module == "accelerate") return next() == "launch" && read_launcher("accelerate");
    if (module == "pip" || module == "venv" || module.empty()) return false;
    line_.program = module;
    take_arguments();
    return true;
  }

  bool read_launcher(const std::string& name) {
    static const std::map<std::string, FlagNames> alone = {
        {"torchrun", {"standalone", "no_python", "run_path", "use_env", "m", "module"}},
        {"deepspeed",
         {"module", "no_python", "no_local_rank", "no_ssh", "force_multi", "save_pid", "elastic_training",
          "bind_cores_to_rank", "use_env"}},
        {"accelerate",
         {"multi_gpu", "cpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "quiet", "q", "debug", "m",
          "module", "no_python", "same_network", "use_xpu", "downcast_bf16", "main_training_function_off",
          "dynamo_use_dynamic", "dynamo_use_fullgraph", "use_parallelism_config"}}};
    line_.launcher = name;
    take_options(alone.at(name));
    return take_program();
  }

  void take_options(const FlagNames& alone) {
    while (!at_end() && words_[at_].text.size() > 1 && words_[at_].text[0] == '-') {
      ShellValue word = words_[at_++];
      const std::size_t equals = word.text.find('=');
      const std::string name = option_name(word.text);
      ShellValue value{"true"};
      if (equals != std::string::npos) {
        value = {word.text.substr(equals + 1), word.unknown};
      } else if (!alone.contains(name) && !at_end() && !words_[at_].text.ends_with(".py")) {
        value = words_[at_++];
      }
      line_.options[name] = std::move(value);
    }
  }

  bool take_program() {
    if (at_end()) return false;
    line_.program = next();
    take_arguments();
    return true;
  }
  void take_arguments() {
    line_.arguments.assign(words_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, words_.size())), words_.end());
  }

  const ShellValues words_;
  std::size_t at_ = 0;
  LaunchLine line_;
};

}  // namespace

BareCommand without_wrappers(const ShellValues& words) {
  return WrapperReader(words).read();
}

std::string LaunchLine::shown() const {
  const std::string wrapper = command.wrapper.empty() ? "" : command.wrapper + " ";
  return fmt::format("{}{} {}", wrapper, launcher, printable(program, 60));
}

std::optional<int> LaunchLine::count(const std::string& option) const {
  const auto found = options.find(option);
  if (found == options.end() || !found->second.is_known()) return std::nullopt;
  return slurm_count(found->second.text);
}

std::optional<LaunchLine> read_launch_line(const BareCommand& command) {
  return LaunchReader(command).read();
}

std::string option_name(const std::string& word) {
  std::string name = word.substr(0, word.find('=')).substr(word.starts_with("--") ? 2 : 1);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace tessera
