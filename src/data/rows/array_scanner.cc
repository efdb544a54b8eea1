#include <fmt/format.h>

#include <array>

#include "core/text.h"
#include "data/rows/row_scanner.h"

namespace tessera {

namespace {

// The bytes at which something changes outside strings.
constexpr auto kIsMark = [] {
  std::array<bool, 256> marks{};
  for (const char mark : {'"', '{', '}', '[', ']'}) marks[static_cast<unsigned char>(mark)] = true;
  return marks;
}();

// Whether the quote at `quote` belongs to the string, which begins before it: an odd number of backslashes precedes.
bool is_escaped(std::string_view bytes, std::size_t quote) {
  std::size_t begin = quote;
  while (begin > 0 && bytes[begin - 1] == '\\') --begin;
  return (quote - begin) % 2 == 1;
}

}  // namespace

std::size_t internal::skip_json_space(std::string_view bytes, std::size_t at) {
  return std::min(bytes.find_first_not_of(" \t\r\n", at), bytes.size());
}

bool internal::pass_json_value(std::string_view bytes, std::size_t& at, std::int64_t& depth, bool& in_string) {
  while (at < bytes.size()) {
    if (in_string) {
      const std::size_t quote = bytes.find('"', at);
      at = std::min(quote, bytes.size() - 1) + 1;
      if (quote == std::string_view::npos) return false;
      in_string = is_escaped(bytes, quote);
      continue;
    }
    while (at < bytes.size() && !kIsMark[static_cast<unsigned char>(bytes[at])]) ++at;
    if (at == bytes.size()) return false;
    const char mark = bytes[at++];
    if (mark == '"') {
      in_string = true;
    } else if (mark == '{' || mark == '[') {
      ++depth;
    } else if (--depth == 0) {  // whether it is the right bracket is left to the parser
      return true;
    }
  }
  return false;
}

std::optional<RowScanner::RowEnd> ArrayScanner::next_row(std::string_view bytes, bool at_end) {
  if (state_ == State::kAtBracket || state_ == State::kDone) return pass_rest(bytes);
  if (state_ == State::kFirst || state_ == State::kAfterComma) {
    if (!enter_row(bytes, at_end)) return std::nullopt;
    if (state_ == State::kAtBracket) return RowEnd{at_, /*is_row=*/false, /*ends_block=*/true};
  }
  if (state_ == State::kInRow) {
    if (!internal::pass_json_value(bytes, at_, depth_, in_string_)) {
      const std::size_t begin = internal::skip_json_space(bytes, row_begin());
      if (at_end) refuse(bytes, begin, "the file ends within the row that begins here");
      return std::nullopt;
    }
    state_ = State::kAfterRow;
  }
  return leave_row(bytes, at_end);
}

bool ArrayScanner::enter_row(std::string_view bytes, bool at_end) {
  at_ = internal::skip_json_space(bytes, at_);
  if (at_ == bytes.size()) {
    if (at_end) refuse(bytes, at_, "the file ends within its array of rows");
    return false;
  }
  if (bytes[at_] == ']' && state_ == State::kFirst) {
    state_ = State::kAtBracket;
  } else if (bytes[at_] == '{') {
    state_ = State::kInRow;
  } else {
    const std::string_view found = bytes.substr(at_, bytes.substr(at_, 24).find_first_of("\r\n"));
    refuse(bytes, at_, fmt::format("expected a row, which is an object, found {}", printable(found)));
  }
  return true;
}

// The comma belongs to the row before it, and the ']' to none.
std::optional<RowScanner::RowEnd> ArrayScanner::leave_row(std::string_view bytes, bool at_end) {
  if (holds_ == Holds::kOneRow) {
    state_ = State::kDone;
    return RowEnd{at_, /*is_row=*/true, /*ends_block=*/true};
  }
  at_ = internal::skip_json_space(bytes, at_);
  if (at_ == bytes.size()) {
    if (at_end) refuse(bytes, at_, "expected ',' or ']' after the row, found the end of the file");
    return std::nullopt;
  }
  const char mark = bytes[at_];
  if (mark != ',' && mark != ']') {
    refuse(bytes, at_, fmt::format("expected ',' or ']' after the row, found {}", printable(bytes.substr(at_, 1))));
  }
  state_ = mark == ',' ? State::kAfterComma : State::kAtBracket;
  if (mark == ',') ++at_;
  return RowEnd{at_, /*is_row=*/true, /*ends_block=*/mark == ']'};
}

std::optional<RowScanner::RowEnd> ArrayScanner::pass_rest(std::string_view bytes) {
  if (state_ == State::kAtBracket) ++at_;
  state_ = State::kDone;
  if (after_ == After::kNothing) {
    const std::size_t more = internal::skip_json_space(bytes, at_);
    if (more < bytes.size()) refuse(bytes, more, "expected the end of the file after its rows, found more");
  }
  at_ = bytes.size();
  if (row_begin() == bytes.size()) return std::nullopt;
  return RowEnd{at_, /*is_row=*/false, /*ends_block=*/true};
}

}  // namespace tessera
