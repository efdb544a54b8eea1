// Where something is in JSON text. A parser knows the offset of a mistake; people want line, column and "expected ','
// or '}', found ...". Runs only when something is wrong, so it need not be fast.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/json.h"

namespace tessera::internal {

struct TextPosition {
  std::size_t line = 1, column = 1;  // from 1; columns count characters, not bytes
};

struct JsonMistake {
  TextPosition at;
  std::string message;
};

TextPosition position_of(std::string_view text, std::size_t offset);

// The first byte of a token, counted from 0 without commas and colons: each of the others is one event of a parser. The
// text must be JSON up to there.
std::size_t token_start(std::string_view text, std::size_t number);

// `offset` is the last byte that the parser read before it gave up, or the text's size when it reached the end.
JsonMistake explain_json_mistake(std::string_view text, std::size_t offset);

}  // namespace tessera::internal
