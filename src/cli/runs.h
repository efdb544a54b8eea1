// `tessera runs ls|show|compare DIR...`: recorded runs, and what differs between them.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_runs(const std::vector<std::string>& args);

}  // namespace tessera
