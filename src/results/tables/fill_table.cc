#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "record/metrics.h"
#include "record/run_memory.h"
#include "results/tables/columns.h"
#include "results/tables/experiment_table.h"

namespace tessera {
namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Texts without numbers, and texts that are all the same.
std::string common_text(const std::vector<Found>& repeats) {
  std::vector<std::string> texts;
  for (const Found& each : repeats) {
    if (!each.text.empty()) add_once(texts, each.text);
  }
  const bool has_values =
      std::any_of(repeats.begin(), repeats.end(), [](const Found& each) { return each.value.has_value(); });
  return has_values && texts.size() != 1 ? "" : join(texts, ", ");
}

// "12.500 (12.100 to 12.900)": the median, the smallest and the largest; the value is the median. Figures that are
// equal in all repeats are shown once.
Found found_of_repeats(const std::vector<Found>& repeats, int digits) {
  if (repeats.size() == 1) return repeats.front();
  Found found;
  std::vector<double> values;
  for (const Found& each : repeats) {
    if (each.value) values.push_back(*each.value);
    if (found.remark.empty()) found.remark = each.remark;
    if (found.reason.empty()) found.reason = each.reason;
  }
  found.text = common_text(repeats);
  if (values.empty()) return found;
  std::sort(values.begin(), values.end());
  found.value = median_of_sorted(values);
  const auto rounded = [&](double value) { return fmt::format("{:.{}f}", value, digits); };
  if (found.text.empty() && rounded(values.front()) != rounded(values.back())) {
    found.text = fmt::format("{} ({} to {})", rounded(*found.value), rounded(values.front()), rounded(values.back()));
  }
  if (values.size() < repeats.size()) {
    found.remark = fmt::format("of {} of {} repeats: {}", values.size(), repeats.size(), found.reason);
  }
  return found;
}

// The repeat whose runtime is the median; of an even number the faster of the middle two. 0 where none has a runtime.
std::size_t median_repeat(const std::vector<RunRecord>& repeats) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    if (runtime_seconds(repeats[i])) order.push_back(i);
  }
  if (order.empty()) return 0;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return *runtime_seconds(repeats[a]) < *runtime_seconds(repeats[b]);
  });
  return order[(order.size() - 1) / 2];
}

const std::string kRepeatsNote =
    "Repeats of an experiment are one row: the median and, in brackets, the smallest and the largest value. Rows are "
    "compared with the baseline's repeat of median runtime.";

class TableFiller {
 public:
  TableFiller(const TableSpec& spec, const ChosenRows& chosen)
      : spec_(spec), columns_(columns_of(spec)), chosen_(chosen) {
    for (const ChosenRow& row : chosen.baselines) {
      if (row.records.empty()) continue;
      baselines_.emplace(row.experiment->name, RowRun{&row.records[median_repeat(row.records)], row.experiment, ""});
    }
  }

  Table fill() {
    table_.name = spec_.name;
    table_.title = spec_.title;
    table_.columns.push_back({spec_.first_column, "", true});
    for (const Column& column : columns_) {
      table_.columns.push_back({column.label, column.shown_unit(), column.is_text()});
    }
    for (const ChosenRow& row : chosen_.rows) add_row(row);
    const std::vector<std::string> unequal = unequal_row_notes(spec_, chosen_);
    remarks_.insert(remarks_.end(), unequal.begin(), unequal.end());
    add_unassigned();
    table_.notes = std::move(remarks_);
    table_.notes.insert(table_.notes.end(), host_lines_.begin(), host_lines_.end());
    table_.notes.insert(table_.notes.end(), spec_.notes.begin(), spec_.notes.end());
    const auto is_repeated = [](const ChosenRow& row) { return row.records.size() > 1; };
    if (std::any_of(chosen_.rows.begin(), chosen_.rows.end(), is_repeated)) table_.notes.push_back(kRepeatsNote);
    return spec_.is_transposed ? transposed(table_) : table_;
  }

 private:
  void add_row(const ChosenRow& row) {
    const RunRecord* first = row.records.empty() ? nullptr : &row.records.front();
    const bool is_setup = spec_.first_column == "Setup";
    std::vector<TableCell> cells = {text_cell(is_setup ? setup_text(*row.experiment, first) : row.name)};
    if (!row.remark.empty()) remarks_.push_back(fmt::format("{}: {}", row.name, row.remark));
    if (row.records.empty()) {
      cells.resize(columns_.size() + 1, missing_cell(row.reason));
      table_.rows.push_back(std::move(cells));
      return;
    }
    if (row.records.size() > 1) remarks_.push_back(fmt::format("{}: {} repeats", row.name, row.records.size()));
    const std::string baseline_name = baseline_of(spec_, *row.experiment);
    const auto baseline = baselines_.find(baseline_name);
    for (const Column& column : columns_) {
      std::vector<Found> repeats;
      for (const RunRecord& run : row.records) {
        repeats.push_back(found_in(column, {&run, row.experiment, baseline_name},
                                   baseline == baselines_.end() ? nullptr : &baseline->second));
      }
      const Found found = found_of_repeats(repeats, column.shown_digits());
      if (!found.remark.empty()) remarks_.push_back(fmt::format("{}, {}: {}", row.name, column.label, found.remark));
      cells.push_back(cell_of(found, column.shown_digits()));
    }
    if (spec_.lists_hosts) add_hosts(row, row.records.front());
    table_.rows.push_back(std::move(cells));
  }

  static TableCell cell_of(const Found& found, int digits) {
    if (!found.value && found.text.empty()) return missing_cell(found.reason);
    if (found.text.empty()) return number_cell(*found.value, digits);
    return {found.value, found.text, ""};
  }

  void add_hosts(const ChosenRow& row, const RunRecord& run) {
    for (const GpuMemoryUse& gpu : memory_of(run).gpus) {
      host_lines_.push_back(fmt::format("{}: [{} - GPU {}] peak {:.2f} GiB, average {:.2f} GiB", row.name,
                                        gpu.file.stem().string(), gpu.index, gpu.used_MiB.peak / 1024,
                                        gpu.used_MiB.average / 1024));
    }
  }

  // Runs that nobody said which row they are.
  void add_unassigned() {
    const bool is_incomplete =
        std::any_of(chosen_.rows.begin(), chosen_.rows.end(), [](const ChosenRow& row) { return row.records.empty(); });
    if (chosen_.unassigned.empty() || !is_incomplete) return;
    constexpr std::size_t kMaxNamed = 3;
    std::vector<std::string> some = chosen_.unassigned;
    if (some.size() > kMaxNamed) {
      some.resize(kMaxNamed);
      some.push_back("...");
    }
    remarks_.push_back(fmt::format("{} without an experiment's name: {}. Name a row's run as ROW=DIR: {}={}",
                                   counted(std::ssize(chosen_.unassigned), "run"), join(some, ", "),
                                   chosen_.rows.back().name, some.front()));
  }

  const TableSpec& spec_;
  const std::vector<Column> columns_;
  const ChosenRows& chosen_;
  std::map<std::string, RowRun> baselines_;  // by the experiment's name
  Table table_;
  std::vector<std::string> remarks_, host_lines_;
};

}  // namespace

Table fill_table(const TableSpec& spec, const ChosenRows& chosen) {
  return TableFiller(spec, chosen).fill();
}

}  // namespace tessera
