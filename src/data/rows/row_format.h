// What a file of rows is, and where its rows begin.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "data/rows/row_parser.h"
#include "data/rows/row_scanner.h"
#include "data/rows/table_file.h"

namespace tessera {

enum class RowFormat { kJson, kJsonLines, kCsv, kTsv, kText, kTable };

// By its ending, which may have .gz behind it (not so for tables); nothing: none of those that are read.
std::optional<RowFormat> row_format_of(const std::filesystem::path& file);
// ".json, .jsonl, ... (each also .gz), .parquet and .arrow", for messages.
const std::string& known_row_endings();

struct RowFileStart {
  std::uint64_t offset = 0;                // of the first row's bytes, unpacked
  std::unique_ptr<RowScanner> scanner;     // none: a table
  std::shared_ptr<const TableFile> table;  // none: a file of text
  std::shared_ptr<const RowParser> parser;
};

// Looks into the file as far as needed: at a CSV file's first row, and through an object that may hold an array of
// rows. Throws UsageError naming the file.
RowFileStart start_of_rows(const std::filesystem::path& file, const RowCutting& cutting);

// The same for .json and .jsonl.
RowFileStart start_of_json_rows(const std::filesystem::path& file, RowFormat format, const RowCutting& cutting);

namespace internal {

inline constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";  // with which some Windows programs begin a file

}  // namespace internal

}  // namespace tessera
