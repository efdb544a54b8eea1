// What `tessera data inspect` says of the rows of sft and lm: what they are, how long, what of them counts for the
// loss, and the first ones as the model reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/json.h"
#include "data/text/encoded_row.h"
#include "data/tokenizer/tokenizer.h"
#include "jobs/row_files.h"

namespace tessera {

// A row as text, in pieces of which all counts for the loss, or nothing.
struct RowPiece {
  std::string text;
  bool counts = false;
};
std::vector<RowPiece> pieces_of(const EncodedRow& row, const Tokenizer& tokenizer);

struct ShownRow {
  std::string place;  // "chats.jsonl:17"
  EncodedRow tokens;
  std::vector<RowPiece> pieces;
};

struct RowReport {
  std::string job;
  TrainSettings settings;
  LoadedRows rows;
  std::vector<ShownRow> first_rows;  // of the first source
};

// Loads the rows as training does. Throws UsageError naming setting, file and line.
RowReport report_on_rows(const std::string& job, const TrainSettings& settings, const RowTokenizer& tokenizer,
                         const Environment& environment, const std::filesystem::path& cache_folder,
                         std::int64_t num_shown);

// `in_colour`: what counts is green, for a terminal; else it stands between ⟦ and ⟧.
std::string report_text(const RowReport& report, bool in_colour);
Json report_json(const RowReport& report);

}  // namespace tessera
