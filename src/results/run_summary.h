// `tessera runs show`: one run on a screen. (no torch)
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "record/run_record.h"
#include "results/tables/table.h"

namespace tessera {

// `now`: seconds since 1970, to tell running from killed.
std::string run_summary_text(const RunRecord& run, double now);
// Facts, settings, figures by name, ranks and files.
Json run_summary_json(const RunRecord& run, double now);

// Newest last, as a terminal shows them. `now`: seconds since 1970, to tell running from killed.
Table run_list(const std::vector<RunRecord>& runs, double now);
Json run_list_json(const std::vector<RunRecord>& runs, double now);

}  // namespace tessera
