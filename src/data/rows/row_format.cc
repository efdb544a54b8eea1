#include "data/rows/row_format.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/rows/byte_source.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

struct RowEnding {
  const char* ending;
  RowFormat format;
};

constexpr std::array<RowEnding, 8> kRowEndings = {{{".json", RowFormat::kJson},
                                                   {".jsonl", RowFormat::kJsonLines},
                                                   {".ndjson", RowFormat::kJsonLines},
                                                   {".csv", RowFormat::kCsv},
                                                   {".tsv", RowFormat::kTsv},
                                                   {".txt", RowFormat::kText},
                                                   {".parquet", RowFormat::kTable},
                                                   {".arrow", RowFormat::kTable}}};

// What PowerShell and Excel may write: refused as a whole, not by its first odd byte.
void refuse_utf16(const fs::path& file) {
  ByteSource source(file);
  std::string first;
  source.read(first, 2);
  if (first != "\xff\xfe" && first != "\xfe\xff") return;
  refuse_file(file.string(), "expected UTF-8, found UTF-16: convert it, as by iconv -f UTF-16 -t UTF-8");
}

RowFileStart start_of_text(const fs::path& file, const RowCutting& cutting) {
  ByteSource source(file);
  std::string first;
  source.read(first, internal::kUtf8Mark.size());
  RowFileStart start;
  start.offset = first == internal::kUtf8Mark ? first.size() : 0;
  start.scanner = std::make_unique<LineScanner>(file.string(), 1, LineScanner::EmptyLines::kAreRows);
  start.parser = text_parser(file.string(), cutting.text);
  return start;
}

RowFileStart start_of_csv(const fs::path& file, char delimiter, const RowCutting& cutting) {
  const std::string origin = file.string();
  ByteSource source(file);
  CsvScanner scanner(origin, 1, delimiter);
  RowFileStart start;
  std::string bytes;
  for (bool at_end = false; !at_end;) {
    at_end = !source.read(bytes, cutting.piece_bytes);
    if (start.offset == 0 && bytes.size() < internal::kUtf8Mark.size() && !at_end) continue;
    if (start.offset == 0 && bytes.starts_with(internal::kUtf8Mark)) {
      start.offset = internal::kUtf8Mark.size();
      bytes.erase(0, start.offset);
    }
    while (const auto cut = scanner.cut(bytes, 1, at_end)) {
      start.offset += cut->end;
      if (cut->num_rows > 0) {
        auto columns = parse_csv_header(std::string_view(bytes).substr(0, cut->end), origin, 1, delimiter);
        start.parser = csv_parser(origin, delimiter, std::move(columns));
        start.scanner = std::make_unique<CsvScanner>(origin, scanner.line(), delimiter);
        return start;
      }
      bytes.erase(0, cut->end);  // an empty line
    }
    if (bytes.size() > cutting.most_row_bytes) break;
  }
  refuse_file(origin, "expected a first row with the columns' names, found none");
}

}  // namespace

std::optional<RowFormat> row_format_of(const fs::path& file) {
  std::string name = lower_case(file.filename().string());
  const bool is_packed = name.ends_with(".gz");
  if (is_packed) name.resize(name.size() - 3);
  for (const auto& [ending, format] : kRowEndings) {
    if (name.ends_with(ending)) return is_packed && format == RowFormat::kTable ? std::nullopt : std::optional(format);
  }
  return std::nullopt;
}

const std::string& known_row_endings() {
  static const std::string endings = ".json, .jsonl, .ndjson, .csv, .tsv, .txt (each also .gz), .parquet and .arrow";
  return endings;
}

RowFileStart start_of_rows(const fs::path& file, const RowCutting& cutting) {
  const auto format = row_format_of(file);
  if (!format) refuse_file(file.string(), "expected a file that ends in one of " + known_row_endings());
  if (*format != RowFormat::kTable) refuse_utf16(file);
  switch (*format) {
    case RowFormat::kJson:
    case RowFormat::kJsonLines:
      return start_of_json_rows(file, *format, cutting);
    case RowFormat::kCsv:
      return start_of_csv(file, ',', cutting);
    case RowFormat::kTsv:
      return start_of_csv(file, '\t', cutting);
    case RowFormat::kText:
      return start_of_text(file, cutting);
    case RowFormat::kTable:
      break;
  }
  RowFileStart start;
  start.table = open_table_file(file);
  start.parser = table_parser(file.string(), start.table, cutting.block_bytes);
  return start;
}

}  // namespace tessera
