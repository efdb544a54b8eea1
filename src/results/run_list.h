// `tessera runs ls`: one line per run. (no torch)
#pragma once

#include <vector>

#include "core/json.h"
#include "record/run_record.h"
#include "results/tables/table.h"

namespace tessera {

// Newest last, as a terminal shows them. `now`: seconds since 1970, to tell running from killed.
Table run_list(const std::vector<RunRecord>& runs, double now);
Json run_list_json(const std::vector<RunRecord>& runs, double now);

}  // namespace tessera
