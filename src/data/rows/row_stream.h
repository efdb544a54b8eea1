// Rows of training data as their files hold them: a stream of blocks, each of which any thread may parse.
//
// Cutting a file into blocks is cheap and done by one thread after the other; parsing is not, and is done by all. Where
// blocks begin is a function of the files alone, so that work can be divided, and taken up again, by their numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"

namespace tessera {

// Consecutive rows of one file, about 4 MiB of them, not parsed yet.
struct RowBlock {
  std::int64_t number = 0;      // over all files of the stream, from 0
  std::size_t file = 0;         // which of them
  std::int64_t first_row = 0;   // in its file, from 0
  std::int64_t first_line = 1;  // in its file, from 1; 0: its rows have no lines
  std::string bytes;            // as the file's format has them
};

struct PlacedRow {
  Json values;            // an object: columns in the file's order
  std::int64_t line = 0;  // or the row's number, where first_line is 0
};

class RowStream {
 public:
  virtual ~RowStream() = default;
  virtual const std::vector<std::filesystem::path>& files() const = 0;
  // Bytes of all files, for progress; and how many of them the blocks so far have covered.
  virtual std::int64_t num_bytes() const = 0;
  virtual std::int64_t num_bytes_done() const = 0;
  // The next block; nothing at the end. One thread at a time. Throws UsageError naming file and line.
  virtual std::optional<RowBlock> next() = 0;
  // Its rows. Any number of threads. Throws UsageError naming file and line.
  virtual std::vector<PlacedRow> parse(const RowBlock& block) const = 0;
  // "data/train.jsonl:17", for messages.
  std::string place_of(const RowBlock& block, const PlacedRow& row) const;
};

// The files one after the other, each read as its ending says: .json (an array of rows, an object that holds one such
// array, or JSON lines), .jsonl, .csv, .tsv, .txt, each also with .gz, .parquet, .arrow.
std::unique_ptr<RowStream> open_rows(std::vector<std::filesystem::path> files);

}  // namespace tessera
