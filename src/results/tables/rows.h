// The rows of a table: which experiments they are, which run fills each, and whether they may be compared. (no torch)
//
// A run belongs to a row by its fact 'experiment'; the newest one that has finished fills it. Repeats, whose
// experiments are named ROW/repeat_1, ROW/repeat_2, ..., fill a row together: the newest finished run of each. A user
// may also name runs: 2_gpus=out/run2.
#pragma once

#include <string>
#include <vector>

#include "experiment/catalogue.h"
#include "record/run_record.h"

namespace tessera {

// The catalogue's experiments in its order, repeats as one; after them those that only the runs name, with the ranks
// that they had.
std::vector<ExperimentSpec> experiments_of(const Catalogue& catalogue, const std::vector<RunRecord>& runs);

const ExperimentSpec* find_experiment(const std::vector<ExperimentSpec>& all, const std::string& name);  // or null
// Those directly in a folder, in their order: of deepspeed/multi_gpu not those of its 2_gpus_stages_comparison. Or the
// one experiment of this name.
std::vector<const ExperimentSpec*> experiments_in(const std::vector<ExperimentSpec>& all, const std::string& folder);

// "mine/wide" of mine/wide/repeat_2; any other name as it is.
std::string without_repeat(const std::string& name);

// "1 node x 2 GPUs": of the run where there is one, since GPUs per node are a setting. `run` may be null.
std::string setup_text(const ExperimentSpec& experiment, const RunRecord* run);

struct NamedRun {
  std::string row;  // as row_name() gives it
  RunRecord record;
};

struct ChosenRow {
  const ExperimentSpec* experiment = nullptr;  // in the list of choose_rows()
  std::string name;                            // row_name()
  std::vector<RunRecord> records;              // several: repeats; none: see the reason
  std::string reason;
  std::string remark;  // "a newer run failed: ..."; empty: nothing to say
};

struct ChosenRows {
  std::vector<ChosenRow> rows;          // in the table's order; the baseline first where it is shown
  std::vector<ChosenRow> baselines;     // what rows are compared with, each once, shown or not
  std::vector<std::string> unassigned;  // folders of runs without an experiment's name
};

// What a row is compared with: the table's baseline, or else that of the row's study; empty: nothing.
std::string baseline_of(const TableSpec& table, const ExperimentSpec& experiment);

// An experiment's name as users write it for a table: '2_gpus', 'cpu_offloading/zero_1', 'baseline'.
std::string row_name(const TableSpec& table, const ExperimentSpec& experiment);

// `experiments` must outlive the rows, which point into it. `now`: seconds since 1970. Throws UsageError for a named
// row that the table does not have.
ChosenRows choose_rows(const TableSpec& table, const std::vector<ExperimentSpec>& experiments,
                       const std::vector<RunRecord>& runs, const std::vector<NamedRun>& named, double now);

// What must be the same in all rows so that their numbers may be compared, one sentence per difference: label mode,
// precision, merge_accumulation, batch, commit; and per run that is not what its row says: other ranks, other offload.
std::vector<std::string> unequal_row_notes(const TableSpec& table, const ChosenRows& chosen);

}  // namespace tessera
