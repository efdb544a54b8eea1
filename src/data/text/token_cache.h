// A SQuAD file as tokens, made once and cached: the next start only maps a file into memory.
//
// The cache file's name is made from the content of the data file and the tokenizer, and from every setting that
// changes the tokens; so nothing is ever stale, and a changed file has another name. It is written to a temporary file
// and renamed. If several processes on one host want the same file, one makes it while the others wait; across hosts,
// or where the file system has no locks, each makes it and the last rename wins, all with the same bytes. A damaged
// file is made again, with a warning. A cache folder that cannot be written costs a warning and time, nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "core/environment.h"
#include "data/text/numpy_permutation.h"
#include "data/text/qa_sequence.h"
#include "data/text/token_store.h"
#include "data/tokenizer/tokenizer.h"

namespace tessera {

struct TextDataSettings {
  std::filesystem::path file;
  Subset subset;
  LabelMode label_mode = LabelMode::kAnswer;
  std::int64_t max_length = 512;
  std::filesystem::path cache_folder;  // empty: no cache
  int num_threads = 0;                 // for tokenising; 0: one per core that this process may use, at most 8
};

// $TESSERA_CACHE, else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; empty (no cache) if neither of the last two
// variables is an absolute path.
std::filesystem::path default_cache_folder(const Environment& environment);

enum class CacheUse { kFound, kMade, kMadeUnkept };  // kMadeUnkept: no cache folder, or not writable

struct TextData {
  TokenStore tokens;
  CacheUse cache_use = CacheUse::kFound;
  std::filesystem::path cache_file;  // empty: not kept
};

// Throws UsageError naming the file and the place in it, or the row that does not fit.
TextData load_text_data(const TextDataSettings& settings, const Tokenizer& tokenizer);
// The same for callers that already have the file's bytes (read_squad_bytes); messages name settings.file.
TextData load_text_data(const TextDataSettings& settings, const Tokenizer& tokenizer, std::string_view file_bytes);

}  // namespace tessera
