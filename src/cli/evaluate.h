// `tessera evaluate`: loss, exact match and F1 of a model folder on a SQuAD file.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args` are the words after `evaluate`.
int run_evaluate(const std::vector<std::string>& args);

}  // namespace tessera
