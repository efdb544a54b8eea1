#include "results/page/run_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "record/figures.h"
#include "record/run_status.h"

namespace tessera {
namespace {

std::optional<double> first_known(std::initializer_list<std::optional<double>> values) {
  for (const std::optional<double>& value : values) {
    if (value) return value;
  }
  return std::nullopt;
}

void add_memory(const RunRecord& run, RunFigures& figures) {
  figures.allocated_peak_MB = allocated_peak_MB(run);
  figures.allocated_mean_MB =
      first_known({mean_of_ranks(run, "allocated_mean_MB"), run.summary.number("avg_mem_alloc_MB")});
  figures.reserved_peak_MB = largest_of_ranks(run, "reserved_peak_MB");
  figures.used_peak_MB = largest_of_ranks(run, "used_peak_MB");
  figures.used_mean_MB = used_mean_MB(run);
  figures.host_peak_MB = resident_peak_MB(run);
  figures.host_mean_MB = first_known({mean_of_ranks(run, "resident_mean_MB"), run.summary.number("avg_cpu_mem_MB")});
  figures.busy_mean_percent = busy_mean_percent(run);
}

RunFigures figures_of_run(const RunRecord& run, double now) {
  RunFigures figures;
  figures.record = &run;
  figures.state = status_of(run, now);
  figures.job = run.text("job");
  if (figures.job.empty() && run.command.size() > 2 && run.command[1] == "train") figures.job = run.command[2];
  figures.strategy = strategy_label(run);
  figures.num_ranks = run.facts.number("ranks");
  if (!figures.num_ranks && !run.devices.empty()) figures.num_ranks = static_cast<double>(run.devices.size());
  figures.samples_per_second = samples_per_second(run);
  figures.runtime_seconds = first_known({runtime_seconds(run), recorded_seconds(run)});
  figures.train_loss = train_loss(run);
  figures.eval_loss = first_known({run.last("eval_loss"), run.summary.number("eval_loss")});
  figures.last_step = static_cast<double>(steps_done(run));
  add_memory(run, figures);
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
  std::string label = run.text("strategy");
  if (label.empty()) {
    const RecordedSetting* setting = run.setting("strategy");
    if (setting != nullptr) label = setting->value;
  }
  const auto is_on = [&](const char* fact) {
    const LogValue* value = run.facts.find(fact);
    const bool* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
    return flag != nullptr && *flag;
  };
  if (is_on("offload_optimizer") || is_on("offload_param")) {
    label += is_on("offload_param") ? " + parameter offload" : " + offload";
    if (is_on("pin_memory")) label += ", pinned";
  }
  return label;
}

}  // namespace tessera
