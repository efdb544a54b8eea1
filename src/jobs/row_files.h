// The rows of sft and lm, from the files that the settings name to what a task draws.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/environment.h"
#include "data/rows/row_stream.h"
#include "data/text/encoded_row.h"
#include "jobs/text_model.h"
#include "settings/train_settings.h"
#include "tessera/world.h"

namespace tessera {

// How the rows of some files become tokens.
struct RowEncoding {
  EncodeRow encode;
  std::string description;  // everything that decides its results, besides the tokenizer
  std::string kind;         // of the rows, for people: "alpaca rows (instruction, input, output)"
};

// From the first rows of the files, which are not empty. What it uses must outlive the call.
using ChooseEncoding = std::function<RowEncoding(const std::vector<PlacedRow>& first_rows)>;

// Tokenises the files, or finds their tokens in the cache, packs the rows, and opens a job that trains on them. Rank 0
// logs what was found and shows how far it is. Throws UsageError naming setting, file and line. Every rank gets the
// same.
std::unique_ptr<OpenJob> open_row_job(World& world, TrainSettings&& settings, OpenedModel&& model,
                                      const ChooseEncoding& choose, const Environment& environment);

// What sft and lm declare in the group of the data, and refuse.
void declare_row_files(Schema& schema, DeclaredSettings& s);
// Rows to evaluate on that nobody named are looked for only where evaluations are asked for.
void resolve_row_files(Schema& schema, DeclaredSettings& s, const Resolution& how, std::vector<std::string>& notes);
void check_row_files(const Schema& schema, const DeclaredSettings& s, bool needs_data);
// Whether the settings name rows to evaluate on.
bool has_evaluation_rows(const TrainSettings& settings);

}  // namespace tessera
