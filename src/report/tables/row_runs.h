// Which run fills which row of a table. (no torch)
//
// A run belongs to a row by its fact 'experiment'; the newest one that has finished fills it. A user may also name
// runs: 2_gpus=out/run2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/run_record.h"
#include "report/tables/declaration.h"

namespace tessera {

struct NamedRun {
  std::string row;  // as row_name() gives it
  RunRecord record;
};

struct ChosenRow {
  const Experiment* experiment = nullptr;
  std::string name;                 // row_name()
  std::optional<RunRecord> record;  // none: see the reason
  std::string reason;
  std::string remark;  // "a newer run failed: ..."; empty: nothing to say
};

struct ChosenRows {
  std::vector<ChosenRow> rows;          // in the table's order; the baseline first where it is shown
  std::optional<ChosenRow> baseline;    // none: the table has none
  std::vector<std::string> unassigned;  // folders of runs without an experiment's name
};

// An experiment's name as users write it for a table: '2_gpus', 'cpu_offloading/zero_1', 'baseline'.
std::string row_name(const TableDeclaration& table, const Experiment& experiment);

// `now`: seconds since 1970. Throws UsageError for a named row that the table does not have.
ChosenRows choose_rows(const TableDeclaration& table, const std::vector<RunRecord>& runs,
                       const std::vector<NamedRun>& named, double now);

}  // namespace tessera
