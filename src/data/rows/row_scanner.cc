#include "data/rows/row_scanner.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace tessera {

namespace {

std::int64_t num_line_ends(std::string_view bytes) {
  return std::count(bytes.begin(), bytes.end(), '\n');
}

}  // namespace

std::optional<RowCut> RowScanner::cut(std::string_view bytes, std::size_t least, bool at_end) {
  bool is_block = false;
  while (!is_block) {
    const auto row = next_row(bytes, at_end);
    if (!row) break;
    row_begin_ = row->end;
    num_rows_ += row->is_row ? 1 : 0;
    is_block = row->end >= least || row->ends_block;
  }
  const bool is_last = at_end && row_begin_ > 0;
  if (!is_block && !is_last) return std::nullopt;
  const RowCut cut{row_begin_, num_rows_};
  line_ += num_line_ends(bytes.substr(0, cut.end));
  at_ -= cut.end;
  row_begin_ = 0;
  num_rows_ = 0;
  return cut;
}

std::int64_t RowScanner::row_line(std::string_view bytes) const {
  return line_ + num_line_ends(bytes.substr(0, row_begin_));
}

void RowScanner::refuse(std::string_view bytes, std::size_t at, const std::string& mistake) const {
  throw UsageError(fmt::format("{}:{}: {}", origin_, line_ + num_line_ends(bytes.substr(0, at)), mistake));
}

bool internal::is_blank_row(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::optional<RowScanner::RowEnd> LineScanner::next_row(std::string_view bytes, bool at_end) {
  const std::size_t newline = bytes.find('\n', at_);
  if (newline == std::string_view::npos) {
    at_ = bytes.size();
    if (!at_end || row_begin() == bytes.size()) return std::nullopt;
  } else {
    at_ = newline + 1;
  }
  const std::string_view line = bytes.substr(row_begin(), at_ - row_begin());
  return RowEnd{at_, empty_ == EmptyLines::kAreRows || !internal::is_blank_row(line)};
}

std::optional<RowScanner::RowEnd> CsvScanner::next_row(std::string_view bytes, bool at_end) {
  if (row_begin() == 0 && at_ == 0) line_end_ = 0;  // after a cut
  while (true) {
    if (state_ == State::kQuoted) {
      const std::size_t quote = bytes.find('"', at_);
      if (quote == std::string_view::npos) {
        at_ = bytes.size();
        if (at_end) refuse(bytes, row_begin(), "a row begins in this line whose quoted field has no closing quote");
        return std::nullopt;
      }
      at_ = quote + 1;
      state_ = State::kAfterQuote;
    } else if (state_ == State::kAfterQuote) {
      if (at_ == bytes.size() && !at_end) return std::nullopt;
      const bool is_doubled = at_ < bytes.size() && bytes[at_] == '"';  // it stands for one quote
      if (is_doubled) ++at_;
      state_ = is_doubled ? State::kQuoted : State::kOutside;
    } else {
      const auto end = walk_outside(bytes, at_end);
      if (end || state_ == State::kOutside) return end;
    }
  }
}

std::optional<RowScanner::RowEnd> CsvScanner::walk_outside(std::string_view bytes, bool at_end) {
  // Searched once per line, however many quoted fields it has.
  line_end_ = std::max(line_end_, at_);
  if (line_end_ >= bytes.size() || bytes[line_end_] != '\n') {
    line_end_ = std::min(bytes.find('\n', line_end_), bytes.size());
  }
  while (true) {
    const std::size_t quote = bytes.substr(0, line_end_).find('"', at_);
    if (quote == std::string_view::npos) break;
    at_ = quote + 1;
    if (quote == row_begin() || bytes[quote - 1] == delimiter_) {
      state_ = State::kQuoted;
      return std::nullopt;
    }
  }
  at_ = line_end_;
  if (line_end_ == bytes.size()) {
    if (!at_end || row_begin() == bytes.size()) return std::nullopt;
  } else {
    ++at_;
  }
  const std::string_view line = bytes.substr(row_begin(), at_ - row_begin());
  return RowEnd{at_, line != "\n" && line != "\r\n"};
}

}  // namespace tessera
