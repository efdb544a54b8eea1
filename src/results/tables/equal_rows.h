// What must be the same in all rows of a table, so that its numbers may be compared. (no torch)
#pragma once

#include <string>
#include <vector>

#include "results/tables/row_runs.h"

namespace tessera {

// One sentence per difference: label mode, precision, merge_accumulation, batch rule, commit; and per run that is not
// what its row says: other ranks, other offload.
std::vector<std::string> unequal_row_notes(const TableDeclaration& table, const ChosenRows& chosen);

}  // namespace tessera
