#include "results/page/run_figures.h"

#include <algorithm>

#include "record/metrics.h"

namespace tessera {
namespace {

RunFigures figures_of_run(const RunRecord& run, double now) {
  RunFigures figures;
  figures.record = &run;
  figures.state = status_of(run, now);
  figures.job = job_text(run);
  figures.strategy = strategy_label(run);
  figures.num_ranks = value_of(run, "ranks");
  figures.samples_per_second = samples_per_second(run);
  figures.runtime_seconds = value_of(run, "elapsed");
  figures.train_loss = train_loss(run);
  figures.eval_loss = value_of(run, "eval_loss");
  figures.last_step = value_of(run, "steps_done");
  figures.allocated_peak_MB = allocated_peak_MB(run);
  figures.allocated_mean_MB = value_of(run, "allocated_mean_MB");
  figures.reserved_peak_MB = value_of(run, "reserved_peak_MB");
  figures.used_peak_MB = value_of(run, "used_peak_MB");
  figures.used_mean_MB = value_of(run, "used_mean_MB");
  figures.host_peak_MB = resident_peak_MB(run);
  figures.host_mean_MB = value_of(run, "resident_mean_MB");
  figures.busy_mean_percent = value_of(run, "busy_mean_percent");
  return figures;
}

// The deepest folder above all runs' folders; of a single run the one above it.
std::filesystem::path shared_folder(const std::vector<RunRecord>& runs) {
  std::filesystem::path shared;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto above = std::filesystem::absolute(runs[i].file).lexically_normal().parent_path().parent_path();
    if (i == 0) shared = above;
    const auto end = std::mismatch(shared.begin(), shared.end(), above.begin(), above.end()).first;
    std::filesystem::path common;
    for (auto part = shared.begin(); part != end; ++part) common /= *part;
    shared = common;
  }
  return shared;
}

}  // namespace

std::string RunFigures::rank_word() const {
  return record->text("device") == "cpu" || host_peak_MB ? "rank" : "GPU";
}

std::vector<RunFigures> figures_of(const std::vector<RunRecord>& runs, double now) {
  const std::filesystem::path shared = shared_folder(runs);
  std::vector<RunFigures> all;
  for (const RunRecord& run : runs) {
    all.push_back(figures_of_run(run, now));
    const auto folder = std::filesystem::absolute(run.file).lexically_normal().parent_path();
    all.back().name = folder.lexically_relative(shared).generic_string();
  }
  return all;
}

std::string strategy_label(const RunRecord& run) {
  std::string label = strategy_text(run);
  const bool offloads_parameters = fact_is_true(run, "offload_param");
  if (fact_is_true(run, "offload_optimizer") || offloads_parameters) {
    label += offloads_parameters ? " + parameter offload" : " + offload";
    if (fact_is_true(run, "pin_memory")) label += ", pinned";
  }
  return label;
}

}  // namespace tessera
