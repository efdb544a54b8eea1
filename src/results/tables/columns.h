// The columns that tables are made of, by name, each with its label, unit and formula. (no torch)
//
// A new column is one entry in columns.cc; a table of experiments/*.json names it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiment/catalogue_file.h"
#include "experiment/table_spec.h"
#include "record/memory_figures.h"
#include "record/run_record.h"

namespace tessera {

// A run that fills a row, alone or with its repeats.
struct RowRun {
  RunRecord record;
  RunMemory memory;
  const ExperimentSpec* experiment = nullptr;
  std::string baseline = "";  // the experiment that the row is compared with; empty: none
};

// What a formula found: a number, or a text, or why there is none. A remark is shown below the table.
struct Found {
  std::optional<double> value = std::nullopt;
  std::string text = "";    // instead of the number, rounded
  std::string reason = "";  // why both are missing
  std::string remark = "";
};

// `baseline` is null where the table has none or its run is missing.
using Formula = std::function<Found(const RowRun& run, const RowRun* baseline)>;

struct Column {
  std::string label, unit;
  int digits = 0;
  Formula formula;
  bool is_text = false;
};

// A table's columns with the labels and units that it gives them. Throws UsageError for a name that there is not.
std::vector<Column> columns_of(const TableSpec& table);

}  // namespace tessera
