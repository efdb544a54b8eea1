// How a table is declared: which experiments are its rows, and which metrics its columns. (no torch)
//
// A new table is one entry in declared_tables.cc. Experiments for which no table is declared share one form
// (general_table).
#pragma once

#include <string>
#include <vector>

#include "experiment/experiments.h"
#include "results/tables/columns.h"

namespace tessera {

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

// The form that any experiments may have: all at and below a folder, with their baselines first. None: there are none.
std::optional<TableDeclaration> general_table(const std::string& folder, const std::vector<Experiment>& experiments);

}  // namespace tessera
