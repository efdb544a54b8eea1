// `tessera completion bash|zsh|fish`: a script with which the shell completes Tessera's commands and options. Here are
// the scripts of bash and zsh, which share the functions that find the command and an option's values.
#include <fmt/format.h>

#include <algorithm>

#include "cli/completion_scripts.h"
#include "core/error.h"
#include "core/output.h"
#include "core/text.h"
#include "core/version.h"
#include "experiment/script_parts.h"

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

namespace {

using internal::CompletionValues;
using internal::CompletionWord;

// Sets `command` to what the words before the cursor name, and REPLY to the values of an option.
constexpr const char* kFindCommand = R"sh(
_tessera_command() {
  local each before= next
  command=
  for each in "$@"; do
    if ! _tessera_value "$command" "$before"; then
      case $command in
        '' | launch) next=$each ;;
        *) next="$command $each" ;;
      esac
      if _tessera_knows "$next"; then command=$next; fi
    fi
    before=$each
  done
}
)sh";

// bash cuts --strategy=ddp into three words.
constexpr const char* kBashMain = R"sh(
_tessera() {
  local command REPLY word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  if [ "$word" = = ]; then
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  _tessera_command "${COMP_WORDS[@]:1:COMP_CWORD - 1}"
  if ! _tessera_value "$command" "$before"; then
    case $word in
      -*) _tessera_options "$command" ;;
      *) _tessera_words "$command" ;;
    esac
  fi
  COMPREPLY=()
  case $REPLY in
    @file) compopt -o default 2>/dev/null ;;
    @value) ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$REPLY" -- "$word") ;;
  esac
  # A program to launch may be any file.
  if [ "$command" = launch ] && [ ${#COMPREPLY[@]} = 0 ]; then compopt -o default 2>/dev/null; fi
}
complete -F _tessera tessera
)sh";

// Read by `source`, or found in $fpath as the function _tessera itself.
constexpr const char* kZshMain = R"sh(
_tessera() {
  local command REPLY word=${words[CURRENT]} before=${words[CURRENT - 1]}
  local -a reply
  _tessera_command "${(@)words[2,CURRENT - 1]}"
  if [[ $word == --*=* ]]; then
    before=${word%%=*}
    compset -P '*='
  fi
  if _tessera_value "$command" "$before"; then
    case $REPLY in
      @file) _files ;;
      @value) return 1 ;;
      *) compadd -- ${=REPLY} ;;
    esac
  elif [[ $word == -* ]]; then
    _tessera_options "$command"
    _describe -o option reply
  else
    _tessera_words "$command"
    # A program to launch may be any file.
    if (( ${#reply} == 0 )); then
      _files
    elif ! _describe command reply && [[ $command == launch ]]; then
      _files
    fi
  fi
}
if [ "$funcstack[1]" = _tessera ]; then
  _tessera "$@"
else
  compdef _tessera tessera
fi
)sh";

std::string patterns(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_word(word));
  return join(quoted, " | ");
}

std::string knows_function(const std::vector<DescribedCommand>& commands) {
  std::string text = "_tessera_knows() {\n  case $1 in\n";
  for (const DescribedCommand& command : commands) {
    text += fmt::format("    {}) ;;\n", patterns(internal::stages_of(command)));
  }
  return text + "    *) return 1 ;;\n  esac\n}\n";
}

std::string value_function(const std::vector<DescribedCommand>& commands) {
  std::string text = "_tessera_value() {\n  case $1 in\n";
  for (const DescribedCommand& command : commands) {
    const std::vector<CompletionValues> all = internal::option_values(command);
    if (all.empty()) continue;
    text += fmt::format("    {})\n      case $2 in\n", patterns(internal::stages_of(command)));
    for (const CompletionValues& each : all) {
      text += fmt::format("        {}) REPLY={} ;;\n", patterns(each.options), shell_word(join(each.values, " ")));
    }
    text += "        *) return 1 ;;\n      esac\n      ;;\n";
  }
  return text + "    *) return 1 ;;\n  esac\n}\n";
}

// A function that gives words for each stage of each command. `assign` is how the shell keeps them.
using Assign = std::string (*)(const std::vector<CompletionWord>& words);

std::string options_function(const std::vector<DescribedCommand>& commands, Assign assign) {
  std::string text = "_tessera_options() {\n  case $1 in\n";
  for (const DescribedCommand& command : commands) {
    text +=
        fmt::format("    {}) {} ;;\n", patterns(internal::stages_of(command)), assign(internal::option_words(command)));
  }
  return text + fmt::format("    *) {} ;;\n  esac\n}}\n", assign(internal::options_without_command()));
}

std::string words_function(const std::vector<DescribedCommand>& commands, Assign assign) {
  std::string text = "_tessera_words() {\n  case $1 in\n";
  std::vector<std::string> stages = {""};
  for (const DescribedCommand& command : commands) stages.push_back(command.name);
  for (const std::string& stage : stages) {
    const std::vector<CompletionWord> words = internal::next_words(commands, stage);
    if (!words.empty()) text += fmt::format("    {}) {} ;;\n", shell_word(stage), assign(words));
  }
  return text + fmt::format("    *) {} ;;\n  esac\n}}\n", assign({}));
}

std::string assign_in_bash(const std::vector<CompletionWord>& words) {
  std::vector<std::string> texts;
  for (const CompletionWord& word : words) texts.push_back(word.text);
  return "REPLY=" + shell_word(words.empty() ? internal::kAnyFile : join(texts, " "));
}

// With what each means: _describe shows it.
std::string assign_in_zsh(const std::vector<CompletionWord>& words) {
  std::string text = "reply=(";
  for (const CompletionWord& word : words) text += fmt::format("\n      {}", shell_word(word.text + ":" + word.help));
  return text + ")";
}

std::string shared_functions(const std::vector<DescribedCommand>& commands, Assign assign) {
  return knows_function(commands) + value_function(commands) + options_function(commands, assign) +
         words_function(commands, assign) + kFindCommand;
}

struct Shell {
  std::string name;
  std::string (*script)(const std::vector<DescribedCommand>&);
};

const std::vector<Shell>& shells() {
  static const std::vector<Shell> all = {{"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};
  return all;
}

std::vector<std::string> shell_names() {
  std::vector<std::string> names;
  for (const Shell& shell : shells()) names.push_back(shell.name);
  return names;
}

struct CompletionSettings {
  std::vector<std::string> words;
};

void declare(Schema& schema, CompletionSettings& s) {
  schema.positionals(join(shell_names(), "|"), &s.words);
}

int run_completion(Schema&, CompletionSettings& s) {
  if (s.words.size() != 1) {
    throw UsageError(fmt::format("tessera completion: expected the name of one shell: {}", join(shell_names(), ", ")));
  }
  for (const Shell& shell : shells()) {
    if (shell.name != s.words.front()) continue;
    print_out(shell.script(described_commands()));
    return 0;
  }
  throw UsageError(fmt::format("tessera completion: '{}' is not a shell that it knows; shells: {}",
                               printable(s.words.front(), 40), join(shell_names(), ", ")));
}

}  // namespace

std::string bash_completion(const std::vector<DescribedCommand>& commands) {
  return fmt::format("# Completes tessera {} in bash: source <(tessera completion bash)\n\n", kVersion) +
         shared_functions(commands, assign_in_bash) + kBashMain;
}

std::string zsh_completion(const std::vector<DescribedCommand>& commands) {
  return fmt::format(
             "#compdef tessera\n# Completes tessera {} in zsh: source <(tessera completion zsh), after compinit\n\n",
             kVersion) +
         shared_functions(commands, assign_in_zsh) + kZshMain;
}

Command completion_command() {
  return with_settings<CompletionSettings>(
      {.name = "completion",
       .summary = "complete commands, options and values in bash, zsh or fish",
       .about = "a script that completes commands, options and values: source <(tessera completion bash)",
       .has_rank = false},
      declare, run_completion);
}

}  // namespace tessera
