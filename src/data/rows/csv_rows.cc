#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/text.h"
#include "data/rows/row_parser.h"

namespace tessera {

namespace {

// Reads the rows of CSV text one after the other.
class CsvReader {
 public:
  CsvReader(std::string_view bytes, const std::string& origin, std::int64_t first_line, char delimiter)
      : bytes_(bytes), origin_(origin), line_(first_line), delimiter_(delimiter) {}

  // The fields of the next row that is not an empty line; false: there is none.
  bool read(std::vector<std::string>& fields) {
    while (at_ < bytes_.size() && pass_line_end()) {
    }
    row_line_ = line_;
    if (at_ == bytes_.size()) return false;
    fields.clear();
    do {
      fields.push_back(read_field());
    } while (pass_delimiter());
    return true;
  }

  std::int64_t row_line() const { return row_line_; }  // in which the row begins that was read last

 private:
  bool pass_line_end() {
    const std::size_t size = bytes_.substr(at_, 1) == "\n" ? 1 : bytes_.substr(at_, 2) == "\r\n" ? 2 : 0;
    at_ += size;
    line_ += size > 0 ? 1 : 0;
    return size > 0;
  }

  // False at the end of the row, behind which the reader then stands.
  bool pass_delimiter() {
    if (at_ == bytes_.size() || pass_line_end()) return false;
    if (bytes_[at_] == delimiter_) {
      ++at_;
      return true;
    }
    refuse(bytes_[at_] == '\r' ? "a carriage return stands alone: expected it before a line feed, or within quotes"
                               : "expected the end of the field after its closing quote; a quote within a field is "
                                 "written twice");
  }

  std::string read_field() {
    if (at_ < bytes_.size() && bytes_[at_] == '"') return read_quoted();
    const std::size_t begin = at_;
    while (at_ < bytes_.size() && bytes_[at_] != delimiter_ && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
    return std::string(bytes_.substr(begin, at_ - begin));
  }

  std::string read_quoted() {
    std::string field;
    while (true) {
      const std::size_t begin = ++at_;  // behind a quote
      at_ = bytes_.find('"', begin);
      if (at_ == std::string_view::npos) refuse("a quoted field has no closing quote");
      const std::string_view part = bytes_.substr(begin, at_ - begin);
      line_ += std::count(part.begin(), part.end(), '\n');
      field += part;
      ++at_;
      if (bytes_.substr(at_, 1) != "\"") return field;
      field += '"';
    }
  }

  [[noreturn]] void refuse(const std::string& mistake) const {
    throw UsageError(fmt::format("{}:{}: {}", origin_, line_, mistake));
  }

  std::string_view bytes_;
  const std::string& origin_;
  std::int64_t line_, row_line_ = 0;
  std::size_t at_ = 0;
  char delimiter_;
};

class CsvParser final : public RowParser {
 public:
  CsvParser(std::string origin, char delimiter, std::vector<std::string> columns)
      : origin_(std::move(origin)), delimiter_(delimiter), columns_(std::move(columns)) {}

  std::vector<PlacedRow> parse(const RowBlock& block) const override {
    check_row_text(block.bytes, origin_, block.first_line);
    CsvReader reader(block.bytes, origin_, block.first_line, delimiter_);
    std::vector<PlacedRow> rows;
    for (std::vector<std::string> fields; reader.read(fields);) {
      if (fields.size() != columns_.size()) {
        throw UsageError(fmt::format("{}:{}: expected {} fields, as in the file's first row, found {}", origin_,
                                     reader.row_line(), columns_.size(), fields.size()));
      }
      Json row = Json::object();
      auto& members = static_cast<Json::object_t::Container&>(row.get_ref<Json::object_t&>());
      for (std::size_t i = 0; i < fields.size(); ++i) members.emplace_back(columns_[i], std::move(fields[i]));
      rows.push_back({std::move(row), reader.row_line()});
    }
    return rows;
  }

 private:
  std::string origin_;
  char delimiter_;
  std::vector<std::string> columns_;
};

}  // namespace

std::shared_ptr<const RowParser> csv_parser(std::string origin, char delimiter, std::vector<std::string> columns) {
  return std::make_shared<CsvParser>(std::move(origin), delimiter, std::move(columns));
}

std::vector<std::string> parse_csv_header(std::string_view row, const std::string& origin, std::int64_t line,
                                          char delimiter) {
  check_row_text(row, origin, line);
  CsvReader reader(row, origin, line, delimiter);
  std::vector<std::string> columns;
  reader.read(columns);
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string place = fmt::format("{}:{}: column {} of the first row", origin, reader.row_line(), i + 1);
    if (columns[i].empty()) {
      throw UsageError(place + " has no name; pandas writes such a column unless to_csv() has index=False");
    }
    if (!seen.insert(columns[i]).second) {
      throw UsageError(fmt::format("{}: a column before it is called {}, too", place, printable(columns[i], 40)));
    }
  }
  return columns;
}

}  // namespace tessera
