#include <algorithm>

#include "record/metrics.h"
#include "results/page/sections.h"

namespace tessera {
namespace {

std::string strategy_label(const RunRecord& run) {
  std::string label = strategy_text(run);
  const bool offloads_parameters = fact_is_true(run, "offload_param");
  if (fact_is_true(run, "offload_optimizer") || offloads_parameters) {
    label += offloads_parameters ? " + parameter offload" : " + offload";
    if (fact_is_true(run, "pin_memory")) label += ", pinned";
  }
  return label;
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

std::optional<double> RunFigures::value(const std::string& metric) const {
  return value_of(*record, metric);
}

std::string RunFigures::rank_word() const {
  return record->text("device") == "cpu" || resident_peak_MB(*record) ? "rank" : "GPU";
}

std::vector<RunFigures> figures_of(const std::vector<RunRecord>& runs, double now) {
  const std::filesystem::path shared = shared_folder(runs);
  std::vector<RunFigures> all;
  for (const RunRecord& run : runs) {
    const auto folder = std::filesystem::absolute(run.file).lexically_normal().parent_path();
    all.push_back({&run, folder.lexically_relative(shared).generic_string(), status_of(run, now), job_text(run),
                   strategy_label(run), value_of(run, "ranks"), samples_per_second(run), value_of(run, "elapsed")});
  }
  return all;
}

}  // namespace tessera
