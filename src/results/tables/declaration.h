// How a table is declared: which experiments are its rows, and a formula per column. (no torch)
//
// A new table is one entry in declared_tables.cc, made of the columns in columns.h. Experiments for which no table is
// declared share one form (general_table.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiments.h"
#include "record/memory_figures.h"
#include "record/run_record.h"

namespace tessera {

// A run that fills a row, alone or with its repeats.
struct RowRun {
  RunRecord record;
  RunMemory memory;
  const Experiment* experiment = nullptr;
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

struct ColumnDeclaration {
  std::string name, unit;
  int digits = 0;
  Formula formula;
  bool is_text = false;
};

// Which batch is the same in all rows of a table.
enum class BatchRule { kPerGpu, kGlobal };

struct TableDeclaration {
  std::string name;  // the experiments' folder
  std::string title;
  std::vector<std::string> folders;  // their direct children are the rows
  std::string baseline;              // what scale factors compare with; empty: what the study of each row says
  bool shows_baseline = false;       // as the first row
  std::string first_column;          // "Setup": nodes and GPUs; anything else: the row's name
  std::vector<ColumnDeclaration> columns;
  std::vector<std::string> notes = {};
  BatchRule batch_rule = BatchRule::kPerGpu;
  bool is_transposed = false;  // rows are shown as columns
  bool lists_hosts = false;    // a line per host and GPU below
};

const std::vector<TableDeclaration>& declared_tables();
// Whether one of them has this row.
bool is_in_declared_table(const Experiment& experiment);
// A declared table, or else the general one of the experiments at and below that folder. Throws UsageError with the
// names that there are.
TableDeclaration find_table(const std::string& name, const std::vector<Experiment>& experiments);

}  // namespace tessera
