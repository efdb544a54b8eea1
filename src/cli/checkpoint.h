// `tessera checkpoint ls|verify|show|prune DIR`: checkpoints on disk.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_checkpoint(const std::vector<std::string>& args);

}  // namespace tessera
