// The page of runs with everything that goes onto it: their tables, the questions they answer, their memory logs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/runs/find_runs.h"

namespace tessera {

struct RunsPage {
  std::string html;
  std::size_t num_runs = 0, num_finished = 0;
};

// `found`: whole records. `file`: where the page will lie; links start there.
RunsPage make_runs_page(FoundRuns found, const std::string& title, const std::filesystem::path& file);

}  // namespace tessera
