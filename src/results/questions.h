// Questions about memory and speed, answered from run records with the arithmetic shown. (no torch)
//
// Runs are told apart by their facts (strategy, ranks, offload, ...), so that any runs can be asked, not only named
// experiments.
#pragma once

#include <string>
#include <vector>

#include "experiment/table_spec.h"
#include "record/run_record.h"

namespace tessera {

struct Answer {
  std::string question;
  std::string answer = "";      // empty: it cannot be answered
  std::string arithmetic = "";  // how the answer follows from the runs' numbers
  std::string why_not = "";     // what is missing

  std::string said() const { return why_not.empty() ? answer : "cannot be answered: " + why_not; }
};

// All questions; those that these runs cannot answer say why. `models`: those of the catalogue.
std::vector<Answer> answer_questions(const std::vector<RunRecord>& runs, const std::vector<ModelSize>& models);

// Those that a table names. `rows`: the runs of its rows; `family`: all runs of its family of experiments, for
// questions that compare tables. Throws UsageError for a name that there is not.
std::vector<Answer> answer_table_questions(const TableSpec& table, const std::vector<RunRecord>& rows,
                                           const std::vector<RunRecord>& family, const std::vector<ModelSize>& models);

// "question\n  answer\n  arithmetic\n", one after the other; for a terminal and, with `markdown`, as a list.
std::string answers_text(const std::vector<Answer>& answers, bool markdown);

}  // namespace tessera
