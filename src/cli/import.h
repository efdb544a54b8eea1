// `tessera import`: a user's sbatch script as an experiment of the catalogue.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_import(const std::vector<std::string>& args);

}  // namespace tessera
