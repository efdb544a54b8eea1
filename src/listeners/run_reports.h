// Everything that reports a run of `tessera train`: the listeners, and what every rank measures.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "listeners/console.h"
#include "listeners/run_recorder.h"
#include "monitor/utilisation.h"
#include "parallel/step_clock.h"
#include "settings/load.h"
#include "tessera/world.h"
#include "train/listener.h"

namespace tessera {

// The history of the run that this one resumes.
struct RunHistory {
  std::vector<LogRecord> records;
  std::optional<std::int64_t> step_in_folder;  // if this run continues that run's files
};

// The page of the run in this folder as HTML; `file` is where it will lie. Handed in by the command line: pages are
// made of records (results/), which lie above the jobs.
using MakePage = std::function<std::string(const std::filesystem::path& folder, const std::filesystem::path& file)>;

class RunReports {
 public:
  // Adds the listeners: rank 0 writes all reports; every rank writes its log and measures the use of its device.
  // World, console and listeners must outlive this. Collective.
  RunReports(const LoadedTrainSettings& run, World& world, const RunHistory& history, const RunFacts& facts,
             Console& console, Listeners& listeners);

  // Step times come from this clock, which must outlive this.
  void watch(StepClock& clock);
  // The utilisation of the whole run. Also hands every rank's measurements to run.json and to the summary that the
  // console shows at the end. Collective.
  LogRecord summary();
  // After the listeners have heard of the end: rank 0 writes the run's page and, unless the run failed, says where it
  // is. `make`: empty for no page.
  void write_page(const MakePage& make, RunEnd end);

 private:
  Usage read_and_touch(const UsageReader& read);

  World& world_;
  std::shared_ptr<UtilisationMeter> utilisation_;
  std::vector<std::string> devices_;  // by rank
  // Touched by the timer's thread, which starts before there is a recorder.
  std::atomic<RunRecorder*> touched_ = nullptr;
  double timer_start_;  // seconds since 1970
  UsageTimer timer_;
  StepClock* clock_ = nullptr;
  std::filesystem::path output_dir_;
  std::string memory_job_;  // empty: no memory logs
  bool shows_breakdown_ = false;
  Console& console_;
  Listeners& listeners_;
  RunRecorder* recorder_ = nullptr;      // rank 0's; the listeners own it
  class EndSummary* summary_ = nullptr;  // likewise
};

}  // namespace tessera
