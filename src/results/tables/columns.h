// How a table's cell is found: a metric of the run, or how it compares with the baseline's. (no torch)
//
// A table of experiments/*.json names columns of columns.cc, or any metric of the registry (record/metrics.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/catalogue_file.h"
#include "experiment/table_spec.h"
#include "record/run_record.h"

namespace tessera {

enum class ColumnRule {
  kValue,            // the metric
  kScale,            // the metric over the baseline's
  kRuntimeScale,     // the baseline's runtime over the run's, for equally much data
  kEfficiency,       // the same in %
  kStudyEfficiency,  // as the row's study defines it: 100 % is perfect
  kSetup,            // "1 node x 2 GPUs"
  kOffload,          // "no", "yes", "pinned"
};

struct Column {
  std::string label;        // the heading
  std::string metric = "";  // of record/metrics.h; for kValue and kScale
  ColumnRule rule = ColumnRule::kValue;
  std::optional<std::string> unit = {};      // none: the metric's. GB or GiB of a metric in MiB divides by 1024
  std::optional<int> digits = std::nullopt;  // after the point; none: the metric's, or 2 of a scale

  std::string shown_unit() const;
  int shown_digits() const;
  bool is_text() const { return rule == ColumnRule::kSetup || rule == ColumnRule::kOffload; }
  bool is_percent() const { return rule == ColumnRule::kEfficiency || rule == ColumnRule::kStudyEfficiency; }
};

// A run that fills a row, alone or with its repeats.
struct RowRun {
  const RunRecord* record = nullptr;
  const ExperimentSpec* experiment = nullptr;
  std::string baseline = "";  // the experiment that the row is compared with; empty: none
};

// What a column says of a run: a number, or a text, or why there is none. A remark is shown below the table.
struct Found {
  std::optional<double> value = std::nullopt;
  std::string text = "";    // instead of the number, rounded
  std::string reason = "";  // why both are missing
  std::string remark = "";
};

// `baseline` is null where the table has none or its run is missing.
Found found_in(const Column& column, const RowRun& run, const RowRun* baseline);

// A table's columns with the labels and units that it gives them. Throws UsageError for a name that there is not.
std::vector<Column> columns_of(const TableSpec& table);

}  // namespace tessera
