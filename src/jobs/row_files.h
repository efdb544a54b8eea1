// The rows of sft and lm, from the files that the settings name to what a task draws.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "data/loading/text_rows.h"
#include "data/rows/row_stream.h"
#include "data/text/encoded_row.h"
#include "data/tokenizer/tokenizer.h"
#include "jobs/jobs.h"
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

struct RowTokenizer {
  const Tokenizer& tokenizer;
  std::filesystem::path folder;  // with its other files: its chat template
};

// What the settings of a job make of rows: training and `tessera data inspect` use the same. The tokenizer must outlive
// the result.
using MakeEncoding = ChooseEncoding (*)(const TrainSettings& settings, const RowTokenizer& tokenizer,
                                        const Environment& environment);
ChooseEncoding sft_encoding(const TrainSettings& settings, const RowTokenizer& tokenizer,
                            const Environment& environment);  // sft.cc
ChooseEncoding lm_encoding(const TrainSettings& settings, const RowTokenizer& tokenizer,
                           const Environment& environment);  // lm.cc

// Files whose rows are of one kind: one of a mix, or all of --train_file.
struct RowSource {
  std::string name;  // for messages: "a.jsonl and 3 more"
  std::vector<std::filesystem::path> files;
  RowCutting cutting;
  RowEncoding encoding;
  TokenRows tokens;
};

struct LoadedRows {
  TextRows training;
  std::optional<TextRows> evaluation;
  std::vector<RowSource> sources;  // those of the training rows, then those of the evaluation's
};

struct RowLoading {
  int num_threads = 0;                                   // 0: one per core
  std::filesystem::path cache_folder;                    // empty: no cache
  bool shows_progress = true;                            // once it takes longer than a moment
  std::function<void(const std::string& text)> say{};    // what was found, line by line
  std::function<void(const RowSource& source)> check{};  // may refuse it
};

// Those of the first block that has any. Throws UsageError if there are none.
std::vector<PlacedRow> first_rows_of(const std::vector<std::filesystem::path>& files, const RowCutting& cutting = {});

// Tokenises the files that the settings name, or finds their tokens in the cache, and packs the rows. Throws UsageError
// naming setting, file and line.
LoadedRows load_rows(const TrainSettings& settings, const Tokenizer& tokenizer, const ChooseEncoding& choose,
                     const Environment& environment, const RowLoading& how);

// Loads the rows and opens a job that trains on them. Rank 0 logs what was found and shows how far it is. Every rank
// gets the same.
std::unique_ptr<OpenJob> open_row_job(World& world, const LoadedTrainSettings& run,
                                      const std::optional<std::filesystem::path>& checkpoint, MakeEncoding encoding);

}  // namespace tessera
