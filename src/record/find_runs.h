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

struct RunPlaces {
  std::vector<std::filesystem::path> records;             // the files run.json
  std::vector<std::filesystem::path> experiment_folders;  // of experiments' runs: those with an experiment.json
  std::vector<std::filesystem::path> bandwidth_logs;      // named comm_test* or nccl*, and every place that is a *.log
};
// At and below these places, each a folder, a run.json or a log of bandwidths, in the order of the places and then by
// name. Throws UsageError for a place that does not exist.
RunPlaces find_run_places(const std::vector<std::string>& places);
// The records alone.
std::vector<std::filesystem::path> find_run_files(const std::vector<std::string>& places);

struct FoundRuns {
  std::vector<RunRecord> runs;        // in the order of find_run_files
  std::vector<std::string> problems;  // one sentence per record that cannot be read; it is skipped
};
FoundRuns read_runs(const std::vector<std::filesystem::path>& files, RunDetail detail);
FoundRuns find_runs(const std::vector<std::string>& places, RunDetail detail);

}  // namespace tessera
