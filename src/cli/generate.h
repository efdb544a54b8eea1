// `tessera generate`: text continued with a model folder.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args` are the words after `generate`.
int run_generate(const std::vector<std::string>& args);

}  // namespace tessera
