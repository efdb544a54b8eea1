// `tessera inspect`: what a model folder or a weight file consists of, from headers alone.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_inspect(const std::vector<std::string>& args);

}  // namespace tessera
