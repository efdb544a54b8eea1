// One page about runs: a self-contained HTML file with words, tables and plots. It asks no network and no server for
// anything, and opens in any browser, on a phone and on paper. (no torch)
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "record/run_record.h"
#include "results/bandwidth_log.h"

namespace tessera {

struct PageTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // texts of cells; "-" where there is none
  std::vector<std::string> notes;              // below the table: why a cell is missing, what differs
};

struct PageQuestion {
  std::string question, answer;
  std::vector<std::string> arithmetic;  // the lines that lead to the answer
};

// Memory logs of a run: one GPU as nvidia-smi reports it (used: all processes), or one host's processes as psrecord
// does. Seconds count from the run's start, as in all plots; MB are 2^20 bytes.
struct GpuLog {
  std::size_t run = 0;  // place in PageInput::runs
  std::string name;     // "node1 GPU 0"
  double capacity_MB = 0;
  std::vector<double> seconds, used_MB;
};
struct HostLog {
  std::size_t run = 0;
  std::string name;  // "node1"
  std::vector<double> seconds, real_MB, cpu_percent;
};

// A run that failed before it could leave a run.json.
struct UnrecordedRun {
  std::string name, reason;
};

struct PageInput {
  std::string title, generated_by;               // "tessera 0.1.0"
  std::vector<RunRecord> runs;                   // in the order in which they are shown
  std::vector<UnrecordedRun> unrecorded;         // only named, among what did not finish
  std::map<std::string, std::string> baselines;  // of experiments: their study's; may be empty
  std::vector<PageTable> tables;
  std::vector<PageQuestion> questions;
  std::vector<GpuLog> gpu_logs;
  std::vector<HostLog> host_logs;
  std::vector<BandwidthLog> bandwidth_logs;
  std::vector<std::string> passed_over;  // files that could not be read, and why
  std::filesystem::path folder = ".";    // where the page will lie: links start there
  double now = 0;                        // seconds since 1970: tells a killed run from one that still goes on
};

// Sections with plots of their own get at most this many runs, the first ones; the others are in the table.
inline constexpr std::size_t kMostRunSections = 100;

std::string make_page(const PageInput& input);

}  // namespace tessera
