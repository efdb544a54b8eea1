// The settings of sft and lm about their rows: which files, and what is made of them.
#pragma once

#include <string>
#include <vector>

#include "settings/declared.h"

namespace tessera {

// What sft and lm declare in the group of the data: the files to train and evaluate on, with declare_rows().
void declare_row_files(Schema& schema, DeclaredSettings& s);
// Which data sets are read, and what both jobs make of their rows.
void declare_rows(Schema& schema, DeclaredSettings& s);
// What one of them adds.
void declare_sft_rows(Schema& schema, DeclaredSettings& s);  // sft.cc
void declare_lm_rows(Schema& schema, DeclaredSettings& s);   // lm.cc
// Rows to evaluate on that nobody named are looked for only where evaluations are asked for.
void resolve_row_files(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes);
void check_row_files(const Schema& schema, const DeclaredSettings& s, bool needs_data);
// Whether the settings name rows to evaluate on.
bool has_evaluation_rows(const TrainSettings& settings);

}  // namespace tessera
