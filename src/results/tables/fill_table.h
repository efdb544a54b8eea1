// A table filled from the runs of its rows. (no torch)
#pragma once

#include "results/tables/declaration.h"
#include "results/tables/row_runs.h"
#include "results/tables/table.h"

namespace tessera {

// The records must be whole (RunDetail::kWhole), since cells look into the history; memory logs are read here.
Table fill_table(const TableDeclaration& declaration, const ChosenRows& chosen);

}  // namespace tessera
