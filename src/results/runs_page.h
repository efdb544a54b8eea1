// The page of runs with everything that goes onto it: their tables, the questions they answer, their memory logs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/experiments.h"
#include "record/find_runs.h"
#include "results/bandwidth_log.h"
#include "results/page/page.h"

namespace tessera {

struct RunsPage {
  std::string html;
  std::size_t num_runs = 0, num_finished = 0;
  std::vector<std::string> problems;  // records that cannot be read: skipped
};

// Of these run.json files. `file`: where the page will lie; links start there. `experiments`: the rows of tables,
// besides those that the runs name. `bandwidths`: what comm-test measured near them. `unrecorded`: further runs,
// without a record, that the page names. Where there are more runs than have a section of their own, the others are
// read in brief.
RunsPage make_runs_page(const std::vector<std::filesystem::path>& records, const std::string& title,
                        const std::filesystem::path& file, const std::vector<Experiment>& experiments,
                        std::vector<BandwidthLog> bandwidths = {}, std::vector<UnrecordedRun> unrecorded = {});

// The page of the one run in a folder.
std::string page_of_run(const std::filesystem::path& folder, const std::filesystem::path& file);

}  // namespace tessera
