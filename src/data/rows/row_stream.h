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
  std::string bytes;            // as the file's format has them; none where first_line is 0
};

struct PlacedRow {
  Json values;            // an object: columns in the file's order
  std::int64_t line = 0;  // or the row's number in its file, from 0, where first_line is 0
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

// How files are cut; other sizes are for tests.
struct RowCutting {
  std::size_t block_bytes = std::size_t{4} << 20;     // a block ends with the first row that reaches as far
  std::size_t piece_bytes = std::size_t{1} << 20;     // read at once
  std::size_t most_row_bytes = std::size_t{1} << 30;  // a larger row is refused: it is held in memory
  // What a row of a .txt is: a line, the same with its end, or the whole file, of a long one each block.
  enum class Text { kLine, kLineWithEnd, kWhole } text = Text::kLine;
};

// The files one after the other, each read as its ending says:
//   .json             an array of rows, an object that holds one such array, one row, or JSON lines
//   .jsonl, .ndjson   one row per line; empty lines are skipped
//   .csv, .tsv        as RFC 4180 has them; the first row names the columns; every value is a text, missing ones are ""
//   .txt              one row {"text": line} per line, empty ones too, as `datasets` reads text; or RowCutting's way
//   .parquet, .arrow  data/rows/table_file.h
// All but the last two may also be packed by gzip, with .gz at the end. Text is UTF-8, with or without a byte order
// mark; lines end with \n or \r\n. An article of a SQuAD file becomes one row per question.
std::unique_ptr<RowStream> open_rows(std::vector<std::filesystem::path> files, const RowCutting& cutting = {});

}  // namespace tessera
