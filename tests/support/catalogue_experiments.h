// The program's own catalogue and its experiments, for tests of what is made from runs of them.
#pragma once

#include "results/tables/experiment_table.h"

namespace tessera {

inline const Catalogue& builtin_catalogue() {
  static const Catalogue catalogue{CatalogueOptions()};
  return catalogue;
}

inline const std::vector<ExperimentSpec>& catalogue_experiments() {
  static const std::vector<ExperimentSpec> all = experiments_of(builtin_catalogue(), {});
  return all;
}

}  // namespace tessera
