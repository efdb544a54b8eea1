// Finds files of rows by what users call them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/environment.h"

namespace tessera {

// Each name is one of these, tried in this order; the files of all names, one after the other:
//   a file           of an ending that open_rows() knows
//   a folder         that save_to_disk() of `datasets` made, or any: all files of known endings in it and in folders
//                    within, sorted by name, without hidden ones and metadata
//   a pattern        data/*.jsonl, data/part-[0-4].json.gz: as the shell matches them
//   a hub's name     tatsu-lab/alpaca, looked up in Hugging Face's caches
//
// `split`: train, validation, test or another, as `datasets` finds it in the names of files and folders
// (data/train-00000-of-00002.parquet, dev.jsonl). Of several splits in a folder that one is taken, "": train. Files
// that name no split are of every split that is asked for if no file of the folder names one; else they are train's
// where no other file is.
//
// Throws UsageError that says what was looked for, and where.
std::vector<std::filesystem::path> find_row_files(const std::vector<std::string>& names, const Environment& environment,
                                                  const std::string& split = "");

}  // namespace tessera
