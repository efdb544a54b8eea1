// `tessera demo`: trains a small model on this machine and shows what came of it.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_demo(const std::vector<std::string>& args);

}  // namespace tessera
