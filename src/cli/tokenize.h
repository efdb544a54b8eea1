// `tessera tokenize`: texts to token ids and back, one per line.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// `args` are the words after `tokenize`.
int run_tokenize(const std::vector<std::string>& args);

}  // namespace tessera
