#include "results/tables/fill_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "results/tables/equal_rows.h"
#include "results/tables/repeats.h"
#include "results/tables/setup_text.h"

namespace tessera {
namespace {

const std::string kRepeatsNote =
    "Repeats of an experiment are one row: the median and, in brackets, the smallest and the largest value. Rows are "
    "compared with the baseline's repeat of median runtime.";

RowRun row_run_of(const RunRecord& run, const Experiment* experiment, const std::string& baseline) {
  return {run, read_run_memory(run), experiment, baseline};
}

class TableFiller {
 public:
  TableFiller(const TableDeclaration& declaration, const ChosenRows& chosen)
      : declaration_(declaration), chosen_(chosen) {
    for (const ChosenRow& row : chosen.baselines) {
      if (row.records.empty()) continue;
      baselines_.emplace(row.experiment->name, row_run_of(row.records[median_repeat(row.records)], row.experiment, ""));
    }
  }

  Table fill() {
    table_.name = declaration_.name;
    table_.title = declaration_.title;
    table_.columns.push_back({declaration_.first_column, "", true});
    for (const ColumnDeclaration& column : declaration_.columns) {
      table_.columns.push_back({column.name, column.unit, column.is_text});
    }
    for (const ChosenRow& row : chosen_.rows) add_row(row);
    const std::vector<std::string> unequal = unequal_row_notes(declaration_, chosen_);
    remarks_.insert(remarks_.end(), unequal.begin(), unequal.end());
    add_unassigned();
    table_.notes = std::move(remarks_);
    table_.notes.insert(table_.notes.end(), host_lines_.begin(), host_lines_.end());
    table_.notes.insert(table_.notes.end(), declaration_.notes.begin(), declaration_.notes.end());
    const auto is_repeated = [](const ChosenRow& row) { return row.records.size() > 1; };
    if (std::any_of(chosen_.rows.begin(), chosen_.rows.end(), is_repeated)) table_.notes.push_back(kRepeatsNote);
    return declaration_.is_transposed ? transposed(table_) : table_;
  }

 private:
  void add_row(const ChosenRow& row) {
    const RunRecord* first = row.records.empty() ? nullptr : &row.records.front();
    const bool is_setup = declaration_.first_column == "Setup";
    std::vector<TableCell> cells = {text_cell(is_setup ? setup_text(*row.experiment, first) : row.name)};
    if (!row.remark.empty()) remarks_.push_back(fmt::format("{}: {}", row.name, row.remark));
    if (row.records.empty()) {
      cells.resize(declaration_.columns.size() + 1, missing_cell(row.reason));
      table_.rows.push_back(std::move(cells));
      return;
    }
    if (row.records.size() > 1) remarks_.push_back(fmt::format("{}: {} repeats", row.name, row.records.size()));
    const std::string baseline_name = baseline_of(declaration_, *row.experiment);
    const auto baseline = baselines_.find(baseline_name);
    std::vector<RowRun> runs;
    for (const RunRecord& run : row.records) runs.push_back(row_run_of(run, row.experiment, baseline_name));
    for (const ColumnDeclaration& column : declaration_.columns) {
      std::vector<Found> repeats;
      for (const RowRun& run : runs) {
        repeats.push_back(column.formula(run, baseline == baselines_.end() ? nullptr : &baseline->second));
      }
      const Found found = found_of_repeats(repeats, column.digits);
      if (!found.remark.empty()) remarks_.push_back(fmt::format("{}, {}: {}", row.name, column.name, found.remark));
      cells.push_back(cell_of(found, column.digits));
    }
    if (declaration_.lists_hosts) add_hosts(row, runs.front());
    table_.rows.push_back(std::move(cells));
  }

  static TableCell cell_of(const Found& found, int digits) {
    if (!found.value && found.text.empty()) return missing_cell(found.reason);
    if (found.text.empty()) return number_cell(*found.value, digits);
    return {found.value, found.text, ""};
  }

  void add_hosts(const ChosenRow& row, const RowRun& run) {
    for (const GpuMemory& gpu : run.memory.gpus) {
      host_lines_.push_back(fmt::format("{}: [{} - GPU {}] peak {:.2f} GiB, average {:.2f} GiB", row.name, gpu.log,
                                        gpu.index, gpu.MiB.peak / 1024, gpu.MiB.average / 1024));
    }
  }

  // Runs that nobody said which row they are.
  void add_unassigned() {
    const bool is_incomplete =
        std::any_of(chosen_.rows.begin(), chosen_.rows.end(), [](const ChosenRow& row) { return row.records.empty(); });
    if (chosen_.unassigned.empty() || !is_incomplete) return;
    constexpr std::size_t kMaxNamed = 3;
    std::vector<std::string> some(
        chosen_.unassigned.begin(),
        chosen_.unassigned.begin() + static_cast<std::ptrdiff_t>(std::min(kMaxNamed, chosen_.unassigned.size())));
    if (chosen_.unassigned.size() > kMaxNamed) some.push_back("...");
    remarks_.push_back(fmt::format("{} run{} without an experiment's name: {}. Name a row's run as ROW=DIR: {}={}",
                                   chosen_.unassigned.size(), chosen_.unassigned.size() == 1 ? "" : "s",
                                   join(some, ", "), chosen_.rows.back().name, some.front()));
  }

  const TableDeclaration& declaration_;
  const ChosenRows& chosen_;
  std::map<std::string, RowRun> baselines_;  // by the experiment's name
  Table table_;
  std::vector<std::string> remarks_, host_lines_;
};

}  // namespace

Table fill_table(const TableDeclaration& declaration, const ChosenRows& chosen) {
  return TableFiller(declaration, chosen).fill();
}

}  // namespace tessera
