// Files of rows as tokens, made once and cached in parts: a corpus may be larger than memory.
//
// A part holds the tokens of consecutive blocks of the files, some 64 MiB of input; where parts begin is a function of
// the files alone. Every process that wants the corpus goes through the files, which is cheap, and takes each next part
// that is neither there nor being made by another: ranks share the work, and so do nodes with a shared file system. At
// the end each waits for the parts of the others; those of a process that has died are made by whoever waits. A part is
// written to a temporary file and renamed: an interrupted start is taken up where it was.
//
// The cache:  corpus-KEY/part-00017.tokens   a token store
//             corpus-KEY/index.json          written when all parts are there: later starts only map them
// KEY names the content of the files, the tokenizer and the encoder. A damaged part is made again, with a warning; a
// part that is damaged inside is noticed when it is read (Verify::kWhenRead). Without a cache folder, or where it
// cannot be written, the tokens are made in memory.
//
// Memory: two blocks and their rows per thread, and the tokens of one part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "data/rows/row_stream.h"
#include "data/text/encoded_row.h"
#include "data/text/token_rows.h"

namespace tessera {

// In bytes of the files.
struct CorpusProgress {
  std::int64_t done = 0, total = 0;
  std::int64_t found = 0;  // of those done: not tokenised by this process, now
};

struct CorpusSettings {
  std::string tokenizer_hash;          // Tokenizer::content_hash()
  std::string encoder;                 // whatever else decides the tokens of a row: "sft 1 max_length 512 template ..."
  std::filesystem::path cache_folder;  // empty: no cache
  int num_threads = 0;                 // 0: one per core; several ranks on a host should divide them
  std::int64_t part_bytes = std::int64_t{64} << 20;
  std::function<void(const CorpusProgress&)> on_progress = {};  // after each block; on the caller's thread
};

struct Corpus {
  TokenRows rows;
  std::filesystem::path folder;     // empty: not kept
  std::int64_t num_parts_made = 0;  // by this call
};

// Opens the files anew: open_rows, but for tests.
using OpenStream = std::function<std::unique_ptr<RowStream>()>;

// Throws UsageError naming file and line of a row that cannot be parsed or encoded.
Corpus load_corpus(const OpenStream& open, const EncodeRow& encode, const CorpusSettings& settings);

// A name for what the files hold, without reading more than some 64 MiB: of their whole content where it is less, else
// of path, size, time of change, and the first and last bytes of each. Throws UsageError for a file that cannot be
// read.
std::string name_of_files(const std::vector<std::filesystem::path>& files);

}  // namespace tessera
