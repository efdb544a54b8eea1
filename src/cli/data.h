// `tessera data inspect PATH`: what a data file or folder holds.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_data(const std::vector<std::string>& args);

}  // namespace tessera
