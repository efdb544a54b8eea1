#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/text.h"
#include "data/rows/row_parser.h"
#include "data/rows/row_scanner.h"

namespace tessera {

namespace {

// One row, which begins in line `line` after `num_columns` characters.
struct RowText {
  std::string_view bytes;
  std::int64_t line;
  std::size_t num_columns = 0;
};

// Python writes these where JSON has no number.
std::string advice_on_numbers(const std::string& message) {
  for (const char* word : {"'NaN'", "'Infinity'", "'-Infinity'"}) {
    if (message.ends_with(word)) return ", which JSON does not have: write null or a number";
  }
  return "";
}

Json parse_row_text(const RowText& row, const std::string& origin) {
  try {
    return parse_json(row.bytes, origin);
  } catch (const UsageError&) {
    // Parsed once more behind as many lines and characters, so that the message has the row's place.
    std::string text(static_cast<std::size_t>(row.line - 1), '\n');
    text.append(row.num_columns, ' ').append(row.bytes);
    try {
      return parse_json(text, origin);
    } catch (const UsageError& error) {
      throw UsageError(error.what() + advice_on_numbers(error.what()));
    }
  }
}

void add_json_row(std::vector<PlacedRow>& rows, const RowText& text, const std::string& origin) {
  Json value = parse_row_text(text, origin);
  const std::string place = fmt::format("{}:{}", origin, text.line);
  if (!value.is_object()) {
    throw UsageError(fmt::format("{}: expected a row, which is an object such as {{\"text\": \"...\"}}, found {}",
                                 place, shown(value)));
  }
  add_rows_of(rows, std::move(value), text.line, place);
}

// Counts lines on the way through a block.
class TextWalk {
 public:
  TextWalk(std::string_view bytes, std::int64_t line) : bytes_(bytes), line_(line) {}

  void move_to(std::size_t at) {
    for (std::size_t newline; (newline = bytes_.substr(0, at).find('\n', at_)) != std::string_view::npos;) {
      ++line_;
      at_ = line_begin_ = newline + 1;
    }
    at_ = at;
  }

  std::string_view bytes() const { return bytes_; }
  std::size_t at() const { return at_; }
  std::int64_t line() const { return line_; }
  // Characters of this line before at(), not bytes: those that continue a character are 10xxxxxx.
  std::size_t num_columns() const {
    const std::string_view before = bytes_.substr(line_begin_, at_ - line_begin_);
    return static_cast<std::size_t>(std::ranges::count_if(before, [](char c) { return (c & 0xc0) != 0x80; }));
  }

 private:
  std::string_view bytes_;
  std::int64_t line_;
  std::size_t at_ = 0, line_begin_ = 0;
};

class JsonLinesParser final : public RowParser {
 public:
  explicit JsonLinesParser(std::string origin) : origin_(std::move(origin)) {}

  std::vector<PlacedRow> parse(const RowBlock& block) const override {
    std::vector<PlacedRow> rows;
    const std::string_view bytes = block.bytes;
    std::int64_t line = block.first_line;
    for (std::size_t begin = 0; begin < bytes.size(); ++line) {
      const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
      const std::string_view text = bytes.substr(begin, end - begin);
      if (!internal::is_blank_row(text)) add_json_row(rows, {text, line}, origin_);
      begin = end + 1;
    }
    return rows;
  }

 private:
  std::string origin_;
};

class JsonArrayParser final : public RowParser {
 public:
  explicit JsonArrayParser(std::string origin) : origin_(std::move(origin)) {}

  std::vector<PlacedRow> parse(const RowBlock& block) const override {
    std::vector<PlacedRow> rows;
    TextWalk walk(block.bytes, block.first_line);
    // The scanner saw to it that only commas and white space are between rows.
    for (std::size_t begin; (begin = walk.bytes().find('{', walk.at())) != std::string_view::npos;) {
      walk.move_to(begin);
      std::int64_t depth = 0;
      bool in_string = false;
      std::size_t end = begin;
      internal::pass_json_value(walk.bytes(), end, depth, in_string);
      add_json_row(rows, {walk.bytes().substr(begin, end - begin), walk.line(), walk.num_columns()}, origin_);
      walk.move_to(end);
    }
    return rows;
  }

 private:
  std::string origin_;
};

class TableParser final : public RowParser {
 public:
  TableParser(std::string origin, std::shared_ptr<const TableFile> table, std::size_t block_bytes)
      : origin_(std::move(origin)), table_(std::move(table)), block_bytes_(block_bytes) {}

  std::vector<PlacedRow> parse(const RowBlock& block) const override {
    const std::int64_t end = table_->block_end(block.first_row, static_cast<std::int64_t>(block_bytes_));
    const std::string bytes = table_->read_json_lines(block.first_row, end);
    std::vector<PlacedRow> rows;
    std::int64_t row = block.first_row;
    for (std::size_t at = 0; at < bytes.size(); ++row) {
      const std::size_t line_end = std::min(bytes.find('\n', at), bytes.size());
      const std::string place = fmt::format("{}: row {}", origin_, row);
      add_rows_of(rows, parse_json(std::string_view(bytes).substr(at, line_end - at), place), row, place);
      at = line_end + 1;
    }
    if (row != end) {
      throw Error(fmt::format("{}: expected the rows {} to {}, found {} of them", origin_, block.first_row, end - 1,
                              row - block.first_row));
    }
    return rows;
  }

 private:
  std::string origin_;
  std::shared_ptr<const TableFile> table_;
  std::size_t block_bytes_;
};

}  // namespace

std::shared_ptr<const RowParser> json_lines_parser(std::string origin) {
  return std::make_shared<JsonLinesParser>(std::move(origin));
}

std::shared_ptr<const RowParser> json_array_parser(std::string origin) {
  return std::make_shared<JsonArrayParser>(std::move(origin));
}

std::shared_ptr<const RowParser> table_parser(std::string origin, std::shared_ptr<const TableFile> table,
                                              std::size_t block_bytes) {
  return std::make_shared<TableParser>(std::move(origin), std::move(table), block_bytes);
}

}  // namespace tessera
