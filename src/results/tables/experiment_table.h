// Tables of experiments: found by name in the catalogue, filled from recorded runs, written as text. (no torch)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/catalogue.h"
#include "results/tables/rows.h"
#include "results/tables/table.h"

namespace tessera {

struct TableRequest {
  std::string name;             // of a table, or of a family or folder of experiments
  std::vector<RunRecord> runs;  // brief ones suffice: those that fill rows are read again
  std::vector<NamedRun> named;  // for rows that the user names
  std::string format = "text";  // text, md, csv, html
};

// The table with the answers to its questions. Throws UsageError with the names that there are for one that is unknown.
std::string experiment_table(const TableRequest& request, const Catalogue& catalogue);

// Whether one of the tables has this row.
bool is_in_table(const ExperimentSpec& experiment, const std::vector<TableSpec>& tables);

// A declared table, or else the general one of the experiments at and below that folder. Throws UsageError with the
// names that there are.
TableSpec find_table(const std::string& name, const std::vector<TableSpec>& tables,
                     const std::vector<ExperimentSpec>& experiments);

// The table of experiments for which none is declared, such as those of a user's own family: all experiments at and
// below `name`, a family or a folder, after the baselines of their studies. None: there are no experiments there.
std::optional<TableSpec> general_table(const std::string& name, const std::vector<ExperimentSpec>& all);

// The records must be whole (RunDetail::kWhole), since cells look into the history; memory logs are read here. Repeats
// of an experiment are one row.
Table fill_table(const TableSpec& spec, const ChosenRows& chosen);

}  // namespace tessera
