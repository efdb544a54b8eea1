#include "report/page/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace tessera {
namespace {

// A run writes its record every few seconds, but not during an evaluation or while a checkpoint is saved.
constexpr double kSilence = 600;

std::optional<double> first_known(std::initializer_list<std::optional<double>> values) {
  for (const std::optional<double>& value : values) {
    if (value) return value;
  }
  return std::nullopt;
}

std::optional<double> rank_maximum(const RunRecord& run, const std::string& number) {
  std::optional<double> most;
  for (const RankRecord& rank : run.ranks) {
    const std::optional<double> value = rank.numbers.number(number);
    if (value && (!most || *value > *most)) most = value;
  }
  return most;
}

std::optional<double> rank_mean(const RunRecord& run, const std::string& number) {
  double sum = 0;
  int count = 0;
  for (const RankRecord& rank : run.ranks) {
    if (const std::optional<double> value = rank.numbers.number(number)) {
      sum += *value;
      ++count;
    }
  }
  return count == 0 ? std::nullopt : std::optional<double>(sum / count);
}

std::string state_of(const RunRecord& run, double now) {
  if (run.status != "running") return run.status;
  const std::optional<double> updated = utc_seconds(run.updated);
  return updated && now - *updated > kSilence ? "killed" : "running";
}

std::optional<double> runtime_of(const RunRecord& run) {
  if (const auto runtime = first_known({run.summary.number("train_runtime"), run.last("train_runtime")}))
    return runtime;
  const std::optional<double> begin = utc_seconds(run.started), end = utc_seconds(run.updated);
  return begin && end ? std::optional<double>(*end - *begin) : std::nullopt;
}

void add_memory(const RunRecord& run, RunFigures& figures) {
  figures.allocated_peak_MB =
      first_known({rank_maximum(run, "allocated_peak_MB"), run.summary.number("max_mem_alloc_MB")});
  figures.allocated_mean_MB =
      first_known({rank_mean(run, "allocated_mean_MB"), run.summary.number("avg_mem_alloc_MB")});
  figures.reserved_peak_MB = rank_maximum(run, "reserved_peak_MB");
  figures.used_peak_MB = rank_maximum(run, "used_peak_MB");
  figures.used_mean_MB = first_known({rank_mean(run, "used_mean_MB"), run.summary.number("avg_mem_total_MB")});
  figures.host_peak_MB = run.summary.number("max_cpu_mem_MB");
  figures.host_mean_MB = run.summary.number("avg_cpu_mem_MB");
  figures.busy_mean_percent = first_known({rank_mean(run, "busy_mean_percent"), run.summary.number("avg_gpu_util_%"),
                                           run.summary.number("avg_cpu_util_%")});
}

RunFigures figures_of_run(const RunRecord& run, double now) {
  RunFigures figures;
  figures.record = &run;
  figures.state = state_of(run, now);
  figures.job = run.text("job");
  if (figures.job.empty() && run.command.size() > 2 && run.command[1] == "train") figures.job = run.command[2];
  figures.strategy = strategy_label(run);
  figures.num_ranks = run.facts.number("ranks");
  if (!figures.num_ranks && !run.devices.empty()) figures.num_ranks = static_cast<double>(run.devices.size());
  figures.samples_per_second =
      first_known({run.summary.number("train_samples_per_second"), run.last("train_samples_per_second"),
                   run.summary.number("train/samples_per_second_mean"), run.last("Throughput/images_per_sec"),
                   run.last("train/samples_per_second")});
  figures.runtime_seconds = runtime_of(run);
  figures.train_loss = first_known({run.summary.number("train_loss"), run.last("train_loss"), run.last("loss")});
  figures.eval_loss = first_known({run.last("eval_loss"), run.summary.number("eval_loss")});
  figures.last_step = run.last("step");
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

std::optional<double> utc_seconds(const std::string& text) {
  std::tm time{};
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2dZ", &time.tm_year, &time.tm_mon, &time.tm_mday, &time.tm_hour,
                  &time.tm_min, &time.tm_sec) != 6) {
    return std::nullopt;
  }
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  return static_cast<double>(timegm(&time));
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
