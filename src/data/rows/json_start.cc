#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "data/rows/byte_source.h"
#include "data/rows/row_format.h"

namespace tessera {

namespace fs = std::filesystem;

namespace {

// An array whose first element is an object, as a member of the file's object.
struct NestedArray {
  std::string key;
  std::uint64_t offset;  // behind its '['
  std::int64_t line;
};

// Members of rows that are such arrays themselves: an object with one of them is a row.
constexpr std::array<std::string_view, 12> kArraysOfRows = {"messages", "conversations", "prompt",  "completion",
                                                            "chosen",   "rejected",      "tools",   "answers",
                                                            "history",  "paragraphs",    "choices", "images"};

// Walks through a file that begins with an object, and sees whether more values follow it (JSON lines), or it is all
// there is. Keeps its text without what is in nested arrays of objects: their line ends alone, for places in messages.
class ObjectWalk {
 public:
  ObjectWalk(std::string origin, std::uint64_t offset, std::int64_t line)
      : origin_(std::move(origin)), offset_(offset), line_(line) {}

  // False: nothing more needs to be read.
  bool see(std::string_view bytes) {
    for (const char c : bytes) {
      has_more_ = has_ended_ && !is_space(c);
      if (has_more_) return false;
      if (in_string_) {
        see_in_string(c);
      } else if (!is_space(c)) {
        see_outside(c);
      }
      if (!is_within_array_ || c == '\n') text_ += c;
      ++offset_;
      if (c == '\n') ++line_;
    }
    return true;
  }

  // After the last byte: refuses what is no JSON.
  void check() const {
    parse_json(text_, origin_);
    if (!has_ended_) throw UsageError(fmt::format("{}:{}: the file ends within its object", origin_, line_));
  }

  bool has_more() const { return has_more_; }
  bool spans_lines() const { return text_.find('\n') < text_.rfind('}'); }
  std::int64_t line() const { return line_; }
  std::size_t num_bytes_kept() const { return text_.size(); }
  const std::vector<NestedArray>& arrays() const { return arrays_; }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

  void see_in_string(char c) {
    if (depth_ == 1) last_string_ += c;
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
  }

  void see_outside(char c) {
    if (may_begin_rows_ && c == '{') {
      arrays_.push_back({last_string_, array_offset_, array_line_});
      is_within_array_ = true;
    }
    may_begin_rows_ = false;
    if (c == '"') {
      in_string_ = true;
      if (depth_ == 1) last_string_ = c;
    } else if (c == '{' || c == '[') {
      ++depth_;
      if (c == '{' || depth_ != 2) return;
      may_begin_rows_ = true;
      array_offset_ = offset_ + 1;
      array_line_ = line_;
    } else if (c == '}' || c == ']') {
      --depth_;
      if (depth_ < 2) is_within_array_ = false;
      has_ended_ = depth_ == 0;
    }
  }

  std::string origin_;
  std::uint64_t offset_;
  std::int64_t line_;
  std::string text_;
  std::int64_t depth_ = 0;
  bool in_string_ = false, is_escaped_ = false;
  std::string last_string_;      // of the object itself, with its quotes: a member's key, when the value begins
  bool may_begin_rows_ = false;  // behind the '[' of a member
  bool is_within_array_ = false;
  std::uint64_t array_offset_ = 0;
  std::int64_t array_line_ = 0;
  bool has_ended_ = false, has_more_ = false;
  std::vector<NestedArray> arrays_;
};

// Up to the first character that is no space, which `at` then is; false: there is none.
struct JsonBeginning {
  std::string bytes;
  std::size_t at = 0;
  std::uint64_t mark_bytes = 0;  // of the byte order mark

  bool read(ByteSource& source, std::size_t piece_bytes) {
    while (true) {
      const bool has_more = source.read(bytes, piece_bytes);
      if (has_more && bytes.size() < internal::kUtf8Mark.size()) continue;
      mark_bytes = bytes.starts_with(internal::kUtf8Mark) ? internal::kUtf8Mark.size() : 0;
      at = internal::skip_json_space(bytes, std::max<std::size_t>(at, mark_bytes));
      if (at < bytes.size() || !has_more) return at < bytes.size();
    }
  }
};

void walk_through(ObjectWalk& walk, std::string_view first, ByteSource& source, const RowCutting& cutting,
                  const std::string& origin) {
  std::string bytes(first);
  while (walk.see(bytes)) {
    bytes.clear();
    if (!source.read(bytes, cutting.piece_bytes)) return;
    if (walk.num_bytes_kept() > cutting.most_row_bytes) {
      refuse_file(origin, "its object is larger than 1 GiB, without an array of rows");
    }
  }
}

// The array that holds the rows; nothing: the object is a row.
std::optional<NestedArray> rows_within(const ObjectWalk& walk, const std::string& origin) {
  std::vector<NestedArray> arrays;
  std::vector<std::string> keys;
  for (const NestedArray& array : walk.arrays()) {
    const std::string key = parse_json(array.key, origin).get<std::string>();
    if (std::ranges::find(kArraysOfRows, key) != kArraysOfRows.end()) continue;
    arrays.push_back(array);
    keys.push_back(key);
  }
  if (arrays.size() > 1) {
    refuse_file(origin, fmt::format("expected one array of rows in its object, found {}: {}; write each to a file of "
                                    "its own",
                                    arrays.size(), listed(keys)));
  }
  return arrays.empty() ? std::nullopt : std::optional(arrays.front());
}

}  // namespace

RowFileStart start_of_json_rows(const fs::path& file, RowFormat format, const RowCutting& cutting) {
  const std::string origin = file.string();
  ByteSource source(file);
  JsonBeginning beginning;
  const bool has_any = beginning.read(source, cutting.piece_bytes);
  if (!has_any && format == RowFormat::kJson) refuse_file(origin, "expected rows, found an empty file");
  const auto from_array = [&](std::uint64_t offset, std::int64_t line, ArrayScanner::After after,
                              ArrayScanner::Holds holds) {
    return RowFileStart{offset, std::make_unique<ArrayScanner>(origin, line, after, holds), nullptr,
                        json_array_parser(origin)};
  };
  const std::string_view first = std::string_view(beginning.bytes).substr(beginning.at);
  const std::int64_t line = 1 + std::count(beginning.bytes.begin(), beginning.bytes.end() - std::ssize(first), '\n');
  if (first.starts_with('[')) {
    return from_array(beginning.at + 1, line, ArrayScanner::After::kNothing, ArrayScanner::Holds::kRows);
  }
  if (first.starts_with('{') && format == RowFormat::kJson) {
    ObjectWalk walk(origin, beginning.at, line);
    walk_through(walk, first, source, cutting, origin);
    if (walk.has_more() && walk.spans_lines()) {
      refuse_file(fmt::format("{}:{}", origin, walk.line()),
                  "expected the end of the file after its object, found more; rows one after the other must have one "
                  "line each, or stand in an array");
    }
    if (!walk.has_more()) {
      walk.check();
      const auto array = rows_within(walk, origin);
      if (!array) {
        return from_array(beginning.at, line, ArrayScanner::After::kNothing, ArrayScanner::Holds::kOneRow);
      }
      return from_array(array->offset, array->line, ArrayScanner::After::kRestOfObject, ArrayScanner::Holds::kRows);
    }
  }
  return {beginning.mark_bytes, std::make_unique<LineScanner>(origin, 1, LineScanner::EmptyLines::kSkipped), nullptr,
          json_lines_parser(origin)};
}

}  // namespace tessera
