// One page about runs: a self-contained HTML file with words, tables and plots. It asks no network and no server for
// anything, and opens in any browser, on a phone and on paper. (no torch)
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "record/run_record.h"
#include "results/bandwidth_log.h"
#include "results/page/plot.h"
#include "results/questions.h"

namespace tessera {

struct PageTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // texts of cells; "-" where there is none
  std::vector<std::string> notes;              // below the table: why a cell is missing, what differs
};

// A curve of a run's memory logs. Seconds count from the run's start, as in all plots; MB are 2^20 bytes.
struct LogCurve {
  std::size_t run = 0;  // place in PageInput::runs
  std::string name;     // "node1 GPU 0", "node1"
  std::vector<Point> points;
  double capacity_MB = 0;  // of a GPU
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
  std::vector<Answer> questions;
  std::vector<LogCurve> gpu_logs;   // MB used of one GPU by all processes, as nvidia-smi reports it
  std::vector<LogCurve> host_logs;  // resident MB of one host's processes, as psrecord reports it
  std::vector<LogCurve> cpu_logs;   // their CPU use in percent
  std::vector<BandwidthLog> bandwidth_logs;
  std::vector<std::string> passed_over;  // files that could not be read, and why
  std::filesystem::path folder = ".";    // where the page will lie: links start there
  double now = 0;                        // seconds since 1970: tells a killed run from one that still goes on
};

// Sections with plots of their own get at most this many runs, the first ones; the others are in the table.
inline constexpr std::size_t kMostRunSections = 100;

std::string make_page(const PageInput& input);

}  // namespace tessera
