// Which run fills which row of a table. (no torch)
//
// A run belongs to a row by its fact 'experiment'; the newest one that has finished fills it. Repeats, whose
// experiments are named ROW/repeat_1, ROW/repeat_2, ..., fill a row together: the newest finished run of each. A user
// may also name runs: 2_gpus=out/run2.
#pragma once

#include <string>
#include <vector>

#include "record/run_record.h"
#include "results/tables/declaration.h"

namespace tessera {

struct NamedRun {
  std::string row;  // as row_name() gives it
  RunRecord record;
};

struct ChosenRow {
  const Experiment* experiment = nullptr;  // in the list of choose_rows()
  std::string name;                        // row_name()
  std::vector<RunRecord> records;          // several: repeats; none: see the reason
  std::string reason;
  std::string remark;  // "a newer run failed: ..."; empty: nothing to say
};

struct ChosenRows {
  std::vector<ChosenRow> rows;          // in the table's order; the baseline first where it is shown
  std::vector<ChosenRow> baselines;     // what rows are compared with, each once, shown or not
  std::vector<std::string> unassigned;  // folders of runs without an experiment's name
};

// What a row is compared with: the table's baseline, or else that of the row's study; empty: nothing.
std::string baseline_of(const TableDeclaration& table, const Experiment& experiment);

// An experiment's name as users write it for a table: '2_gpus', 'cpu_offloading/zero_1', 'baseline'.
std::string row_name(const TableDeclaration& table, const Experiment& experiment);

// `experiments` must outlive the rows, which point into it. `now`: seconds since 1970. Throws UsageError for a named
// row that the table does not have.
ChosenRows choose_rows(const TableDeclaration& table, const std::vector<Experiment>& experiments,
                       const std::vector<RunRecord>& runs, const std::vector<NamedRun>& named, double now);

// One sentence per difference: label mode, precision, merge_accumulation, batch rule, commit; and per run that is not
// what its row says: other ranks, other offload.
std::vector<std::string> unequal_row_notes(const TableDeclaration& table, const ChosenRows& chosen);

}  // namespace tessera
