// Completion in fish, whose language is its own. A line of an answer is a word, a tab and what the word means.
#include <fmt/format.h>

#include "cli/completion_scripts.h"
#include "core/text.h"
#include "core/version.h"

namespace tessera {
namespace {

using internal::CompletionValues;
using internal::CompletionWord;

constexpr const char* kFishMain = R"fish(
function __tessera_command
    set -l command ''
    set -l before ''
    for each in $argv
        if not __tessera_value "$command" "$before" >/dev/null
            set -l next "$command $each"
            contains -- "$command" '' launch; and set next "$each"
            __tessera_knows "$next"; and set command "$next"
        end
        set before "$each"
    end
    echo "$command"
end

function __tessera_complete
    set -l token (commandline -ct)
    set -l words (commandline -opc)
    set -l before "$words[-1]"
    set -l command (__tessera_command $words[2..-1])
    set -l start ''
    if string match -qr '^--[^=]*=' -- "$token"
        set before (string split -m 1 = -- "$token")[1]
        set start "$before="
    end
    if set -l values (__tessera_value "$command" "$before")
        switch "$values[1]"
            case @file
                for each in (__fish_complete_path (string replace -- "$start" '' "$token"))
                    echo "$start$each"
                end
            case @value
            case '*'
                for each in $values
                    echo "$start$each"
                end
        end
    else if string match -q -- '-*' "$token"
        __tessera_options "$command"
    else
        __tessera_words "$command"; or __fish_complete_path "$token"
        test "$command" = launch; and __fish_complete_path "$token"
    end
end

complete -c tessera -e
complete -c tessera -f -a '(__tessera_complete)'
)fish";

std::string fish_word(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + fish_word(word);
  return text;
}

std::string print_in_fish(const std::vector<CompletionWord>& words) {
  std::string text = "printf '%s\\t%s\\n'";
  for (const CompletionWord& word : words) {
    text += fmt::format(" \\\n                {} {}", fish_word(word.text), fish_word(word.help));
  }
  return text + "\n";
}

std::string fish_case(const std::vector<std::string>& stages, const std::string& action) {
  return fmt::format("        case{}\n            {}", fish_words(stages), action);
}

std::string fish_function(const std::string& name, const std::string& cases, const std::string& otherwise) {
  return fmt::format("function {}\n    switch \"$argv[1]\"\n{}        case '*'\n            {}\n    end\nend\n\n", name,
                     cases, otherwise);
}

std::string fish_values(const std::vector<CompletionValues>& all) {
  std::string text = "switch \"$argv[2]\"\n";
  for (const CompletionValues& each : all) {
    text += fmt::format("                case{}\n                    printf '%s\\n'{}\n", fish_words(each.options),
                        fish_words(each.values));
  }
  return text + "                case '*'\n                    return 1\n            end\n";
}

}  // namespace

std::string fish_completion(const std::vector<DescribedCommand>& commands) {
  std::vector<std::string> stages;
  std::string values, options, words = fish_case({""}, print_in_fish(internal::next_words(commands, "")));
  for (const DescribedCommand& command : commands) {
    const std::vector<std::string> own = internal::stages_of(command);
    stages.insert(stages.end(), own.begin(), own.end());
    const std::vector<CompletionValues> of_options = internal::option_values(command);
    if (!of_options.empty()) values += fish_case(own, fish_values(of_options));
    if (!command.options.empty()) options += fish_case(own, print_in_fish(internal::option_words(command)));
    const std::vector<CompletionWord> next = internal::next_words(commands, command.name);
    if (!next.empty()) words += fish_case({command.name}, print_in_fish(next));
  }
  return fmt::format("# Completes tessera {} in fish: tessera completion fish | source\n\n", kVersion) +
         fish_function("__tessera_knows", fish_case(stages, "return 0\n"), "return 1") +
         fish_function("__tessera_value", values, "return 1") +
         fish_function("__tessera_options", options,
                       std::string(trim(print_in_fish(internal::options_without_command())))) +
         fish_function("__tessera_words", words, "return 1") + std::string(trim(kFishMain)) + "\n";
}

}  // namespace tessera
