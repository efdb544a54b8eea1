// Finds runs below folders and reads their records. (no torch)
//
// A folder with a run.json is a run. Not searched: hidden folders, checkpoint-*, wandb, and within a run also its
// TensorBoard files (runs) and logs. Links are followed; a folder that can be reached twice counts once.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "record/record_file.h"

namespace tessera {

// The files run.json at and below these places, each a folder, a run.json or a log of bandwidths, in the order of the
// places and then by name. Throws UsageError for a place that does not exist.
std::vector<std::filesystem::path> find_run_files(const std::vector<std::string>& places);
// Logs of comm-test or nccl-tests in the same places: named comm_test* or nccl*, and every place that is a *.log.
std::vector<std::filesystem::path> find_bandwidth_files(const std::vector<std::string>& places);

struct FoundRuns {
  std::vector<RunRecord> runs;        // in the order of find_run_files
  std::vector<std::string> problems;  // one sentence per record that cannot be read; it is skipped
};
FoundRuns read_runs(const std::vector<std::filesystem::path>& files, RunDetail detail);
FoundRuns find_runs(const std::vector<std::string>& places, RunDetail detail);

}  // namespace tessera
