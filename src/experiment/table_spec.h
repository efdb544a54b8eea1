// A table of experiments as a catalogue file declares it: its rows, and columns by name. (no torch)
//
//   "table_notes": {"log": "GPU 0: the first GPU of the head node; ..."},   // a text that several tables share
//   "tables": {
//     "multi_gpu": {                            // its full name is FAMILY/multi_gpu
//       "title": "DDP on several GPUs",
//       "rows": ["multi_gpu"],                  // folders, whose direct children are rows; preset: the table's name
//       "baseline": "baseline",                 // what scales compare with; preset: what each row's study says
//       "shows_baseline": true,                 // as the first row
//       "first_column": "Setup",                // nodes and GPUs; anything else: the row's name
//       "columns": ["runtime", {"column": "train_loss", "label": "Loss"}],
//       "notes": ["log", "Any other sentence."],
//       "questions": ["lowest_peak"],           // answered below the table
//       "same_batch": "global",                 // in all rows; preset: per GPU
//       "transposed": true, "lists_hosts": true
//     },
//     "multi_node": {"like": "multi_gpu", "title": "DDP on several nodes"}   // all but the rows
//   }
//
// Which columns and questions there are is known to results/, which refuses others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json_reader.h"

namespace tessera {

struct ColumnSpec {
  std::string name;                        // "train_loss"
  std::optional<std::string> label, unit;  // instead of the column's own
};

struct TableSpec {
  std::string name;  // family/path
  std::string title;
  std::string file;                  // that declares it, for messages
  std::vector<std::string> folders;  // their direct children are the rows; or single experiments
  std::string baseline;              // an experiment; empty: what the study of each row says
  std::string first_column;          // "Setup": nodes and GPUs; anything else: the row's name
  std::vector<ColumnSpec> columns;
  std::vector<std::string> notes, questions;
  bool shows_baseline = false;    // as the first row
  bool has_global_batch = false;  // the global batch is the same in all rows, not the batch per GPU
  bool is_transposed = false;     // rows are shown as columns
  bool lists_hosts = false;       // a line per host and GPU below
};

// A model whose size a question asks about: "models" of a catalogue file.
struct ModelSize {
  std::string name;  // "BLOOM-560M"
  long long num_parameters = 0, hidden_size = 0, num_layers = 0;
  std::string remark;  // said with the answer; empty: nothing
};

// Of one catalogue file, in its order. Throw UsageError with place and reason.
std::vector<TableSpec> read_tables(const JsonReader& file);
std::vector<ModelSize> read_models(const JsonReader& file);

}  // namespace tessera
