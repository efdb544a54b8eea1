// The experiments of the program's own catalogue, for tests of what is made from runs of them.
#pragma once

#include "experiment/table_experiments.h"

namespace tessera {

inline const std::vector<Experiment>& catalogue_experiments() {
  static const std::vector<Experiment> all = table_experiments(Catalogue(CatalogueOptions()));
  return all;
}

}  // namespace tessera
