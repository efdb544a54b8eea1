#include "results/run_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/log_json.h"
#include "core/quantity.h"
#include "record/figures.h"
#include "record/find_runs.h"
#include "record/run_status.h"

namespace tessera {
namespace {

std::vector<const RunRecord*> newest_last(const std::vector<RunRecord>& runs) {
  std::vector<const RunRecord*> sorted;
  for (const RunRecord& run : runs) sorted.push_back(&run);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RunRecord* a, const RunRecord* b) { return a->started < b->started; });
  return sorted;
}

// Which memory it is stands behind it: an allocator's and a process's are not to be compared.
TableCell peak_cell(const RunRecord& run) {
  const auto cell = [](double MB, const char* kind) {
    return TableCell{MB, fmt::format("{} {}", human_bytes(static_cast<std::int64_t>(MB * kBytesPerMb)), kind), ""};
  };
  if (const auto allocated = allocated_peak_MB(run)) return cell(*allocated, "allocated");
  if (const auto resident = resident_peak_MB(run)) return cell(*resident, "process");
  return {};
}

TableCell figure_cell(const std::optional<double>& value, int digits) {
  return value ? number_cell(*value, digits) : TableCell();
}

Json json_or_null(const std::optional<double>& value) {
  return value ? json_of(LogValue(*value)) : Json(nullptr);
}

}  // namespace

Table run_list(const std::vector<RunRecord>& runs, double now) {
  Table table;
  table.columns = {{"run", "", true},          {"job", "", true},          {"strategy", "", true},
                   {"ranks", "", false},       {"status", "", true},       {"steps", "", false},
                   {"samples/s", "", false},   {"peak memory", "", false}, {"loss", "", false},
                   {"started (UTC)", "", true}};
  for (const RunRecord* run : newest_last(runs)) {
    const int ranks = num_ranks(*run);
    table.rows.push_back({text_cell(folder_text(*run)), text_cell(job_text(*run)), text_cell(strategy_text(*run)),
                          ranks > 0 ? number_cell(ranks, 0) : TableCell(), text_cell(status_of(*run, now)),
                          text_cell(fmt::format("{}/{}", steps_done(*run), run->total_steps)),
                          figure_cell(samples_per_second(*run), 2), peak_cell(*run), figure_cell(train_loss(*run), 4),
                          text_cell(run->started)});
  }
  return table;
}

Json run_list_json(const std::vector<RunRecord>& runs, double now) {
  Json list = Json::array();
  for (const RunRecord* run : newest_last(runs)) {
    list.push_back({{"run", folder_text(*run)},
                    {"job", job_text(*run)},
                    {"strategy", strategy_text(*run)},
                    {"ranks", num_ranks(*run)},
                    {"status", status_of(*run, now)},
                    {"exit_reason", run->exit_reason},
                    {"steps", steps_done(*run)},
                    {"total_steps", run->total_steps},
                    {"samples_per_second", json_or_null(samples_per_second(*run))},
                    {"allocated_peak_MB", json_or_null(allocated_peak_MB(*run))},
                    {"resident_peak_MB", json_or_null(resident_peak_MB(*run))},
                    {"train_loss", json_or_null(train_loss(*run))},
                    {"started", run->started}});
  }
  return list;
}

}  // namespace tessera
