// Pieces of the scripts that run experiments: plain bash that a person can read, edit and run. (no torch)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/values.h"

namespace tessera {

std::string shell_word(std::string_view text);  // quoted if it has to be
// An option and its value on each line, continued with backslashes.
std::string shell_command(const std::vector<std::string>& words);
// `export NAME=value` lines.
std::string shell_exports(const Values& environment);

}  // namespace tessera
