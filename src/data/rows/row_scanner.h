// Finds where rows end, so that a file can be cut into blocks of whole rows without parsing them.
//
// The caller appends pieces of the file to a buffer and shows all of it again; a scanner remembers where it stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

struct RowCut {
  std::size_t end = 0;        // the block is the bytes before it
  std::int64_t num_rows = 0;  // none: the bytes only separate rows
};

class RowScanner {
 public:
  // `first_line` is the line of the first byte that cut() will see.
  RowScanner(std::string origin, std::int64_t first_line) : origin_(std::move(origin)), line_(first_line) {}
  virtual ~RowScanner() = default;

  // `bytes` begin where the last cut ended; `at_end`: the file has no more. The end of the first row that ends at
  // `least` or later, so that cuts do not depend on the sizes of pieces; nothing: more bytes are needed, or there are
  // none. Throws UsageError naming file and line where there is something else than rows.
  std::optional<RowCut> cut(std::string_view bytes, std::size_t least, bool at_end);

  std::int64_t line() const { return line_; }           // in which the next block begins
  std::int64_t row_line(std::string_view bytes) const;  // in which the row begins that is being read
  std::size_t row_begin() const { return row_begin_; }  // in the bytes
  const std::string& origin() const { return origin_; }

 protected:
  struct RowEnd {
    std::size_t end;
    bool is_row;              // not just an empty line
    bool ends_block = false;  // what follows belongs to no row
  };
  // The end of the row that begins at row_begin(), searched from at_ on, which it moves.
  virtual std::optional<RowEnd> next_row(std::string_view bytes, bool at_end) = 0;

  [[noreturn]] void refuse(std::string_view bytes, std::size_t at, const std::string& mistake) const;

  std::size_t at_ = 0;  // everything before it has been looked at

 private:
  std::string origin_;
  std::int64_t line_;
  std::size_t row_begin_ = 0;
  std::int64_t num_rows_ = 0;
};

// One row per line.
class LineScanner final : public RowScanner {
 public:
  enum class EmptyLines { kSkipped, kAreRows };
  LineScanner(std::string origin, std::int64_t first_line, EmptyLines empty)
      : RowScanner(std::move(origin), first_line), empty_(empty) {}

 private:
  std::optional<RowEnd> next_row(std::string_view bytes, bool at_end) override;

  EmptyLines empty_;
};

// Lines, but not within quotes: RFC 4180. A quote opens a field only at its beginning, elsewhere it is a character.
class CsvScanner final : public RowScanner {
 public:
  CsvScanner(std::string origin, std::int64_t first_line, char delimiter)
      : RowScanner(std::move(origin), first_line), delimiter_(delimiter) {}

 private:
  enum class State { kOutside, kQuoted, kAfterQuote };

  std::optional<RowEnd> next_row(std::string_view bytes, bool at_end) override;
  // Looks at an unquoted part, up to a quote that opens a field (nothing) or the end of the row.
  std::optional<RowEnd> walk_outside(std::string_view bytes, bool at_end);

  char delimiter_;
  State state_ = State::kOutside;
  std::size_t line_end_ = 0;  // the first at or after at_, or the end of the bytes seen so far
};

// The objects of a JSON array, from behind its '['.
class ArrayScanner final : public RowScanner {
 public:
  // kNothing: the array, or the only row, is the whole file. kRestOfObject: already checked.
  enum class After { kNothing, kRestOfObject };
  enum class Holds { kRows, kOneRow };  // kOneRow: no array, just one object
  ArrayScanner(std::string origin, std::int64_t first_line, After after, Holds holds = Holds::kRows)
      : RowScanner(std::move(origin), first_line), after_(after), holds_(holds) {}

 private:
  enum class State { kFirst, kAfterComma, kInRow, kAfterRow, kAtBracket, kDone };  // kAtBracket: ']' is next

  std::optional<RowEnd> next_row(std::string_view bytes, bool at_end) override;
  bool enter_row(std::string_view bytes, bool at_end);
  std::optional<RowEnd> leave_row(std::string_view bytes, bool at_end);
  std::optional<RowEnd> pass_rest(std::string_view bytes);

  After after_;
  Holds holds_;
  State state_ = State::kFirst;
  std::int64_t depth_ = 0;
  bool in_string_ = false;
};

namespace internal {

// Moves `at` behind the value whose brackets and strings are being read; false: the bytes end before that.
bool pass_json_value(std::string_view bytes, std::size_t& at, std::int64_t& depth, bool& in_string);
// The first byte from `at` on that is not JSON's white space, or the end.
std::size_t skip_json_space(std::string_view bytes, std::size_t at);
bool is_blank_row(std::string_view line);

}  // namespace internal

}  // namespace tessera
