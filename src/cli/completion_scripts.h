// The scripts of `tessera completion`. All have the same parts: a command known so far ('launch', 'train bloom-qa') is
// found in the words before the cursor; then functions made of the declarations answer what may come next.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"

namespace tessera {

std::string bash_completion(const std::vector<DescribedCommand>& commands);
std::string zsh_completion(const std::vector<DescribedCommand>& commands);
std::string fish_completion(const std::vector<DescribedCommand>& commands);

namespace internal {

// In place of a list of values: any file, or a value that nobody can guess.
inline constexpr const char* kAnyFile = "@file";
inline constexpr const char* kAnyValue = "@value";

struct CompletionWord {
  std::string text, help;
};

// The words that a command is known by while one is typing: "runs", then "runs ls".
std::vector<std::string> stages_of(const DescribedCommand& command);
// What may come after these words; empty: the name of a file.
std::vector<CompletionWord> next_words(const std::vector<DescribedCommand>& commands, const std::string& stage);
std::vector<CompletionWord> option_words(const DescribedCommand& command);
std::vector<CompletionWord> options_without_command();

// The options of a command that take a value, together if they take the same ones.
struct CompletionValues {
  std::vector<std::string> options;
  std::vector<std::string> values;  // or one of the constants above
};
std::vector<CompletionValues> option_values(const DescribedCommand& command);

}  // namespace internal
}  // namespace tessera
