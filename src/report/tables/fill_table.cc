#include "report/tables/fill_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "report/runs/figures.h"
#include "report/tables/equal_rows.h"

namespace tessera {
namespace {

std::string count_of(int number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// "1 node x 2 GPUs": of the run where there is one, since GPUs per node are a setting.
std::string setup_text(const ChosenRow& row) {
  int nodes = row.experiment->nodes, gpus = row.experiment->num_gpus();
  if (row.record && num_ranks(*row.record) > 0) {
    nodes = std::max(1, num_nodes(*row.record));
    gpus = num_ranks(*row.record);
  }
  if (gpus % nodes != 0) return fmt::format("{}, {}", count_of(nodes, "node"), count_of(gpus, "GPU"));
  return fmt::format("{} x {}", count_of(nodes, "node"), count_of(gpus / nodes, "GPU"));
}

RowRun row_run_of(const ChosenRow& row) {
  return {*row.record, read_run_memory(*row.record), row.experiment};
}

class TableFiller {
 public:
  TableFiller(const TableDeclaration& declaration, const ChosenRows& chosen)
      : declaration_(declaration), chosen_(chosen) {
    if (chosen.baseline && chosen.baseline->record) baseline_ = row_run_of(*chosen.baseline);
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
    return declaration_.is_transposed ? transposed(table_) : table_;
  }

 private:
  void add_row(const ChosenRow& row) {
    const bool is_setup = declaration_.first_column == "Setup";
    std::vector<TableCell> cells = {text_cell(is_setup ? setup_text(row) : row.name)};
    if (!row.remark.empty()) remarks_.push_back(fmt::format("{}: {}", row.name, row.remark));
    if (!row.record) {
      cells.resize(declaration_.columns.size() + 1, missing_cell(row.reason));
      table_.rows.push_back(std::move(cells));
      return;
    }
    const RowRun run = row_run_of(row);
    for (const ColumnDeclaration& column : declaration_.columns) {
      const Found found = column.formula(run, baseline_ ? &*baseline_ : nullptr);
      if (!found.remark.empty()) remarks_.push_back(fmt::format("{}, {}: {}", row.name, column.name, found.remark));
      cells.push_back(cell_of(found, column.digits));
    }
    if (declaration_.lists_hosts) add_hosts(row, run);
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
    const bool is_incomplete = std::any_of(chosen_.rows.begin(), chosen_.rows.end(),
                                           [](const ChosenRow& row) { return !row.record.has_value(); });
    if (chosen_.unassigned.empty() || !is_incomplete) return;
    constexpr std::size_t kMaxNamed = 3;
    std::vector<std::string> some(
        chosen_.unassigned.begin(),
        chosen_.unassigned.begin() + static_cast<std::ptrdiff_t>(std::min(kMaxNamed, chosen_.unassigned.size())));
    if (chosen_.unassigned.size() > kMaxNamed) some.push_back("...");
    remarks_.push_back(fmt::format("{} without an experiment's name: {}. Name a row's run as ROW=DIR: {}={}",
                                   count_of(static_cast<int>(chosen_.unassigned.size()), "run"), join(some, ", "),
                                   chosen_.rows.back().name, some.front()));
  }

  const TableDeclaration& declaration_;
  const ChosenRows& chosen_;
  std::optional<RowRun> baseline_;
  Table table_;
  std::vector<std::string> remarks_, host_lines_;
};

}  // namespace

Table fill_table(const TableDeclaration& declaration, const ChosenRows& chosen) {
  return TableFiller(declaration, chosen).fill();
}

}  // namespace tessera
