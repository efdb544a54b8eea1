// The table of experiments for which none is declared, such as those of a user's own family. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/tables/declaration.h"

namespace tessera {

// All experiments at and below `name`, a family or a folder, after the baselines of their studies. None: there are no
// experiments there.
std::optional<TableDeclaration> general_table(const std::string& name, const std::vector<Experiment>& all);

}  // namespace tessera
