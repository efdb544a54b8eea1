// `tessera experiment VERB NAME...`: the experiments of the catalogue.
#pragma once

#include <string>
#include <vector>

namespace tessera {

int run_experiment(const std::vector<std::string>& args);

}  // namespace tessera
