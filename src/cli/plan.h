// `tessera plan`: the memory of a training step, by strategy, before anything is started.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_plan(const std::vector<std::string>& args);

}  // namespace tessera
