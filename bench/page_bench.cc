// The page of many runs: how long reading their records and making the page takes, and how large it is.
// page_bench [FOLDER]: the records are written there (default: a new folder under the system's temporary one).
// Exit status 3: over a limit. 100 runs of 1,000 steps: 1 s and 5 MB; 1,000 runs: 5 s.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/file.h"
#include "core/host.h"
#include "core/json.h"
#include "record/record_file.h"
#include "results/page/page.h"

namespace {

using namespace tessera;
namespace fs = std::filesystem;

constexpr int kNumSteps = 1000, kNumRanks = 8, kNumReadings = 600;

// Noise that every machine makes alike.
double noise(int a, int b) {
  const double x = std::sin(a * 12.9898 + b * 78.233) * 43758.5453;
  return x - std::floor(x);
}

Json rank_json(int run, int rank) {
  Json series = {{"period_seconds", 1.0}};
  for (const char* name : {"allocated_MB", "reserved_MB", "used_MB", "busy_percent"}) {
    Json readings = Json::array();
    for (int i = 0; i < kNumReadings; ++i) readings.push_back(std::round(1e5 * noise(run + rank, i)) / 10);
    series[name] = std::move(readings);
  }
  Json parts = Json::array();
  for (const char* name : {"data wait", "forward", "backward", "exposed communication", "update"}) {
    parts.push_back({{"name", name}, {"mean_ms", 10 + 5 * noise(run, rank)}, {"std_ms", 0.5}});
  }
  return {{"rank", rank},
          {"host", "node0"},
          {"device", "NVIDIA H200"},
          {"numbers", {{"allocated_peak_MB", 30000.5}, {"capacity_MB", 143771}, {"step_mean_ms", 60 + rank}}},
          {"parts", std::move(parts)},
          {"series", std::move(series)}};
}

// Each step has a log line and a speed, as a run with logging_steps 1 writes them; four evaluations.
Json run_json(int run) {
  Json metrics = Json::array();
  for (int step = 1; step <= kNumSteps; ++step) {
    const double time = 1794733200 + 0.6 * step, epoch = step / 250.0;
    metrics.push_back({{"step", step},
                       {"time", time},
                       {"loss", std::round(1e4 * (1 + 3 * std::exp(-step / 200.0) + 0.1 * noise(run, step))) / 1e4},
                       {"grad_norm", 1 + noise(step, run)},
                       {"learning_rate", 5e-5 * (1 - step / double(kNumSteps))},
                       {"epoch", epoch}});
    metrics.push_back({{"step", step}, {"time", time}, {"train/samples_per_second", 26 + noise(run, step + 1)}});
    if (step % 250 == 0) metrics.push_back({{"step", step}, {"time", time}, {"eval_loss", 1.5}, {"epoch", epoch}});
  }
  Json ranks = Json::array(), devices = Json::array();
  for (int rank = 0; rank < kNumRanks; ++rank) {
    ranks.push_back(rank_json(run, rank));
    devices.push_back("NVIDIA H200");
  }
  return {
      {"format", kRunRecordFormat},
      {"status", "finished"},
      {"exit_reason", ""},
      {"started", "2026-11-15T09:00:00Z"},
      {"updated", "2026-11-15T09:10:00Z"},
      {"settings", {{"learning_rate", {{"value", fmt::format("{}e-05", run % 7)}, {"origin", "command line"}}}}},
      {"facts", {{"job", "bloom-qa"}, {"strategy", "zero2"}, {"ranks", kNumRanks}, {"device", "cuda"}}},
      {"versions", {{"torch", "2.8.0"}}},
      {"hosts", {"node0"}},
      {"devices", std::move(devices)},
      {"commit", "abc123"},
      {"command", {"tessera", "train", "bloom-qa"}},
      {"total_steps", kNumSteps},
      {"checkpoints", Json::array()},
      {"metrics", std::move(metrics)},
      {"summary", {{"train_samples_per_second", 26 + noise(run, 0)}, {"train_runtime", 600.5}, {"train_loss", 1.2}}},
      {"ranks", std::move(ranks)}};
}

bool measure(const fs::path& folder, int num_runs, double most_seconds, double most_MB) {
  double begin = steady_seconds();
  PageInput input;
  input.title = "Benchmark";
  input.folder = folder;
  for (int run = 0; run < num_runs; ++run) {
    input.runs.push_back(read_run_record(folder / fmt::format("run_{}", run)));
  }
  const double read = steady_seconds() - begin;
  begin = steady_seconds();
  const std::string page = make_page(input);
  const double made = steady_seconds() - begin, megabytes = static_cast<double>(page.size()) / 1e6;
  write_file_atomically(folder / fmt::format("page_{}.html", num_runs), page);
  const bool is_fine = made <= most_seconds && megabytes <= most_MB;
  fmt::print(
      "{} runs of {} steps on {} ranks: records read in {:.2f} s, page made in {:.2f} s (limit {} s), {:.2f} MB{}{}\n",
      num_runs, kNumSteps, kNumRanks, read, made, most_seconds, megabytes,
      std::isfinite(most_MB) ? fmt::format(" (limit {} MB)", most_MB) : "", is_fine ? "" : ": over the limit");
  return is_fine;
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path folder = argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path() / "tessera_page_bench";
  for (int run = 0; run < 1000; ++run) {
    fs::create_directories(folder / fmt::format("run_{}", run));
    write_file_atomically(folder / fmt::format("run_{}", run) / "run.json", run_json(run).dump());
  }
  const bool hundred = measure(folder, 100, 1, 5), thousand = measure(folder, 1000, 5, INFINITY);
  if (argc < 2) fs::remove_all(folder);
  return hundred && thousand ? 0 : 3;
}
