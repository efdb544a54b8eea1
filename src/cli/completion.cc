#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/completion_scripts.h"
#include "config/schema.h"
#include "core/error.h"
#include "core/output.h"
#include "core/text.h"

namespace tessera {

namespace internal {

namespace {

bool is_part_of_another(const std::string& name) {
  return name.find(' ') != std::string::npos;
}

}  // namespace

std::vector<std::string> stages_of(const DescribedCommand& command) {
  std::vector<std::string> stages = {command.name};
  for (const std::string& verb : command.verbs) stages.push_back(command.name + " " + verb);
  return stages;
}

std::vector<CompletionWord> next_words(const std::vector<DescribedCommand>& commands, const std::string& stage) {
  std::vector<CompletionWord> words;
  const std::string start = stage + " ";
  for (const DescribedCommand& command : commands) {
    if (command.name == stage) {
      for (const std::string& verb : command.verbs) words.push_back({verb, command.usage});
    } else if (command.name.starts_with(start)) {
      words.push_back({command.name.substr(start.size()), command.summary});
    } else if ((stage.empty() || stage == "launch") && !is_part_of_another(command.name)) {
      words.push_back({command.name, command.summary});
    }
  }
  return words;
}

std::vector<CompletionWord> option_words(const DescribedCommand& command) {
  std::vector<CompletionWord> words;
  for (const DescribedOption& option : command.options) {
    for (const std::string& name : option.names) words.push_back({name, option.help});
  }
  return words;
}

std::vector<CompletionWord> options_without_command() {
  return {{"--help", "the commands"}, {"--version", "of Tessera and of what it uses"}};
}

std::vector<CompletionValues> option_values(const DescribedCommand& command) {
  std::vector<CompletionValues> all;
  for (const DescribedOption& option : command.options) {
    std::vector<std::string> values = option.values;
    if (option.takes == DescribedOption::Takes::kNothing) continue;
    if (values.empty()) values = {option.takes == DescribedOption::Takes::kText ? kAnyFile : kAnyValue};
    const auto same = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.values == values; });
    std::vector<std::string>& options =
        same == all.end() ? all.emplace_back(CompletionValues{{}, values}).options : same->options;
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  return all;
}

}  // namespace internal

int run_completion(const std::vector<std::string>& args, const std::vector<Command>& commands) {
  struct Shell {
    std::string name;
    std::string (*script)(const std::vector<DescribedCommand>&);
  };
  static const std::vector<Shell> shells = {
      {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};
  std::vector<std::string> names, words;
  for (const Shell& shell : shells) names.push_back(shell.name);
  Schema schema("tessera completion",
                "a script that completes commands, options and values: source <(tessera completion bash)");
  schema.positionals(join(names, "|"), &words);
  if (!schema.read_command_line(args)) return 0;
  if (schema.wants_print_config()) {
    print_out(schema.config_text());
    return 0;
  }
  if (words.size() != 1) {
    throw UsageError(fmt::format("tessera completion: expected the name of one shell: {}", join(names, ", ")));
  }
  for (const Shell& shell : shells) {
    if (shell.name != words.front()) continue;
    print_out(shell.script(describe(commands)));
    return 0;
  }
  throw UsageError(fmt::format("tessera completion: '{}' is not a shell that it knows; shells: {}",
                               printable(words.front(), 40), join(names, ", ")));
}

}  // namespace tessera
