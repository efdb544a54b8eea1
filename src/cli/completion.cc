// `tessera completion bash|zsh|fish`: a script with which the shell completes Tessera's commands and options.
//
// All scripts have the same parts: a command known so far ('launch', 'train bloom-qa') is found in the words before the
// cursor; then functions made of the declarations, a choice each, answer what may come next. What does not depend on
// the declarations is in completion/.
#include <fmt/format.h>

#include <map>

#include "cli/commands.h"
#include "core/error.h"
#include "core/output.h"
#include "core/text.h"
#include "core/version.h"
#include "experiment/scripts.h"

namespace tessera {
namespace {

// In place of a list of values: any file, or a value that nobody can guess.
constexpr const char* kAnyFile = "@file";
constexpr const char* kAnyValue = "@value";

struct CompletionWord {
  std::string text, help;
};
using CompletionWords = std::vector<CompletionWord>;

std::string fish_word(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string values_in_sh(const std::vector<std::string>& values) {
  return "REPLY=" + shell_word(join(values, " "));
}

std::string values_in_fish(const std::vector<std::string>& values) {
  std::string text = "printf '%s\\n'";
  for (const std::string& value : values) text += " " + fish_word(value);
  return text;
}

std::string words_in_bash(const CompletionWords& words) {
  return values_in_sh(words.empty() ? std::vector<std::string>{kAnyFile} : texts_of(words, &CompletionWord::text));
}

// With what each means: _describe shows it.
std::string words_in_zsh(const CompletionWords& words) {
  std::string text = "reply=(";
  for (const CompletionWord& word : words) text += "\n  " + shell_word(word.text + ":" + word.help);
  return text + ")";
}

// A line of an answer is a word, a tab and what the word means.
std::string words_in_fish(const CompletionWords& words) {
  if (words.empty()) return "return 1";
  std::string text = "printf '%s\\t%s\\n'";
  for (const CompletionWord& word : words)
    text += fmt::format(" \\\n  {} {}", fish_word(word.text), fish_word(word.help));
  return text;
}

struct Language {
  std::string (*quoted)(std::string_view word);
  const char* between_patterns;
  const char *one_case, *choice,
      *function;  // formats: of patterns and action; argument, cases and the rest; name, body
  std::string (*values)(const std::vector<std::string>& values);  // gives an option's values, or a constant above
};
constexpr Language kSh = {
    shell_word, " | ", "{}) {} ;;\n", "case ${} in\n{}*) {} ;;\nesac", "_tessera_{}() {{\n{}\n}}\n", values_in_sh};
constexpr Language kFish = {fish_word,
                            " ",
                            "case {}\n{}\n",
                            "switch \"$argv[{}]\"\n{}case '*'\n{}\nend",
                            "function __tessera_{}\n{}\nend\n",
                            values_in_fish};

struct Shell {
  const char* name;
  const char* head;  // format: of the version
  const Language& language;
  std::string (*words)(const CompletionWords& words);  // gives words with what they mean; none: the name of a file
  const char* constant_part;
};

constexpr Shell kShells[] = {
    {
        "bash",
        "# Completes tessera {} in bash: source <(tessera completion bash)\n\n",
        kSh,
        words_in_bash,
#include "cli/completion/find_command.sh"
#include "cli/completion/in_bash.sh"
    },
    {
        "zsh",
        "#compdef tessera\n# Completes tessera {} in zsh: source <(tessera completion zsh), after compinit\n\n",
        kSh,
        words_in_zsh,
#include "cli/completion/find_command.sh"
#include "cli/completion/in_zsh.sh"
    },
    {
        "fish",
        "# Completes tessera {} in fish: tessera completion fish | source\n\n",
        kFish,
        words_in_fish,
#include "cli/completion/in_fish.fish"
    }};

using Cases = std::vector<std::pair<std::vector<std::string>, std::string>>;  // patterns, and what to do

std::string choice_text(const Language& language, int argument, const Cases& cases, const std::string& otherwise) {
  std::string text;
  for (const auto& [patterns, action] : cases) {
    text += fmt::format(fmt::runtime(language.one_case),
                        join(texts_of(patterns, language.quoted), language.between_patterns), action);
  }
  return fmt::format(fmt::runtime(language.choice), argument, text, otherwise);
}

// What may come after these words; empty: the name of a file.
CompletionWords next_words(const std::vector<DescribedCommand>& commands, const std::string& stage) {
  CompletionWords words;
  const std::string start = stage + " ";
  for (const DescribedCommand& command : commands) {
    if (command.name == stage) {
      for (const std::string& verb : command.verbs) words.push_back({verb, command.usage});
    } else if (command.name.starts_with(start)) {
      words.push_back({command.name.substr(start.size()), command.summary});
    } else if ((stage.empty() || stage == "launch") && command.name.find(' ') == std::string::npos) {
      words.push_back({command.name, command.summary});
    }
  }
  return words;
}

Cases values_of_options(const Language& language, const DescribedCommand& command) {
  using Takes = DescribedOption::Takes;
  std::map<std::vector<std::string>, std::vector<std::string>> options;  // by the values that they take
  for (const DescribedOption& option : command.options) {
    if (option.takes == Takes::kNothing) continue;
    const std::vector<std::string> any = {option.takes == Takes::kText ? kAnyFile : kAnyValue};
    std::vector<std::string>& alike = options[option.values.empty() ? any : option.values];
    alike.insert(alike.end(), option.names.begin(), option.names.end());
  }
  Cases cases;
  for (const auto& [values, names] : options) cases.emplace_back(names, language.values(values));
  return cases;
}

std::string completion_script(const Shell& shell, const std::vector<DescribedCommand>& commands) {
  const Language& language = shell.language;
  Cases known, values, options, words = {{{""}, shell.words(next_words(commands, ""))}};
  for (const DescribedCommand& command : commands) {
    // What it is known by while one is typing: "runs", then "runs ls".
    std::vector<std::string> stages = {command.name};
    for (const std::string& verb : command.verbs) stages.push_back(command.name + " " + verb);
    known.emplace_back(stages, "true");
    if (const Cases cases = values_of_options(language, command); !cases.empty()) {
      values.emplace_back(stages, choice_text(language, 2, cases, "return 1"));
    }
    CompletionWords names;
    for (const DescribedOption& option : command.options) {
      for (const std::string& name : option.names) names.push_back({name, option.help});
    }
    options.emplace_back(stages, shell.words(names));
    const CompletionWords next = next_words(commands, command.name);
    if (!next.empty()) words.push_back({{command.name}, shell.words(next)});
  }
  const auto function = [&](const char* name, const Cases& cases, const std::string& otherwise) {
    return fmt::format(fmt::runtime(language.function), name, choice_text(language, 1, cases, otherwise));
  };
  const std::string without_command =
      shell.words({{"--help", "the commands"}, {"--version", "of Tessera and of what it uses"}});
  return fmt::format(fmt::runtime(shell.head), kVersion) + function("knows", known, "return 1") +
         function("value", values, "return 1") + function("options", options, without_command) +
         function("words", words, shell.words({})) + "\n" + shell.constant_part;
}

std::vector<std::string> shell_names() {
  return texts_of(kShells, &Shell::name);
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
  for (const Shell& shell : kShells) {
    if (shell.name != s.words.front()) continue;
    print_out(completion_script(shell, described_commands()));
    return 0;
  }
  throw UsageError(fmt::format("tessera completion: '{}' is not a shell that it knows; shells: {}",
                               printable(s.words.front(), 40), join(shell_names(), ", ")));
}

}  // namespace

Command completion_command() {
  return with_settings<CompletionSettings>(
      {.name = "completion",
       .summary = "complete commands, options and values in bash, zsh or fish",
       .about = "a script that completes commands, options and values: source <(tessera completion bash)",
       .has_rank = false},
      declare, run_completion);
}

}  // namespace tessera
