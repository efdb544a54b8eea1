// A table filled from the runs of its rows. (no torch)
#pragma once

#include "report/tables/declaration.h"
#include "report/tables/row_runs.h"
#include "report/tables/table.h"

namespace tessera {

// The records must be whole (RunDetail::kWhole), since cells look into the history; memory logs are read here.
Table fill_table(const TableDeclaration& declaration, const ChosenRows& chosen);

}  // namespace tessera
