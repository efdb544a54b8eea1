// A SQuAD file as tokens, made once and kept: the second start maps a file into memory and is there.
//
// The cache file's name is made of the data file's content, the tokenizer's, and every setting that changes the tokens;
// so nothing is ever stale, and a changed file has another name. It is written beside its place and renamed. Of several
// processes of one host that want the same file one makes it while the others wait; across hosts, or where the file
// system has no locks, each makes it and the last rename wins, all with the same bytes. A damaged file is made anew,
// with a warning. A cache folder that cannot be written costs a warning and time, nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
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
  int num_threads = 0;                 // that tokenise; 0: one a core that this process may use, at most 8
};

// $XDG_CACHE_HOME/tessera, else ~/.cache/tessera; empty where neither variable is a whole path: then there is no cache.
std::filesystem::path default_cache_folder(const Environment& environment);

enum class CacheUse { kFound, kMade, kMadeUnkept };  // kMadeUnkept: no cache folder, or not writable

struct TextData {
  TokenStore tokens;
  CacheUse cache_use = CacheUse::kFound;
  std::filesystem::path cache_file;  // empty: not kept
};

// Throws UsageError naming the file and the place in it, or the row that cannot be made to fit.
TextData load_text_data(const TextDataSettings& settings, const Tokenizer& tokenizer);
// The same for those who have the file's bytes already (read_squad_bytes); settings.file is what messages call it.
TextData load_text_data(const TextDataSettings& settings, const Tokenizer& tokenizer, std::string_view file_bytes);

}  // namespace tessera
