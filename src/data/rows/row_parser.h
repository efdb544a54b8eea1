// Parses the rows of a block, as its file's format has them. Immutable: any number of threads use one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/rows/row_stream.h"
#include "data/rows/table_file.h"

namespace tessera {

class RowParser {
 public:
  virtual ~RowParser() = default;
  // Throws UsageError naming file and line.
  virtual std::vector<PlacedRow> parse(const RowBlock& block) const = 0;
};

// `origin` is what messages call the file.
std::shared_ptr<const RowParser> json_lines_parser(std::string origin);
// Objects with commas between them.
std::shared_ptr<const RowParser> json_array_parser(std::string origin);
// A column `text`, in which lines end with \n.
std::shared_ptr<const RowParser> text_parser(std::string origin, RowCutting::Text text);
// All values are text.
std::shared_ptr<const RowParser> csv_parser(std::string origin, char delimiter, std::vector<std::string> columns);
// The rows of a block have no bytes until they are parsed.
std::shared_ptr<const RowParser> table_parser(std::string origin, std::shared_ptr<const TableFile> table,
                                              std::size_t block_bytes);

// The names in the first row of a CSV file. Throws UsageError where one is empty or appears twice.
std::vector<std::string> parse_csv_header(std::string_view row, const std::string& origin, std::int64_t line,
                                          char delimiter);

// Refuses text that is not UTF-8, or has a NUL byte, by its line.
void check_row_text(std::string_view bytes, const std::string& origin, std::int64_t first_line);

// A SQuAD file's article becomes one row per question (id, title, context, question, answers), as `datasets` has them;
// any other row is added as it is. `place`: "train.json:3".
void add_rows_of(std::vector<PlacedRow>& rows, Json value, std::int64_t line, const std::string& place);

}  // namespace tessera
