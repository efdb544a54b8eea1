// Where JSON text goes wrong and what was expected there. A parser knows the offset; people want line, column and
// "expected ',' or '}', found ...". Runs only on text that is known to be wrong, so it need not be fast.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::internal {

struct TextPosition {
  std::size_t line = 1, column = 1;  // from 1; columns count characters, not bytes
};

struct JsonMistake {
  TextPosition at;
  std::string message;
};

TextPosition position_of(std::string_view text, std::size_t offset);

// The first byte of the token that holds `offset`.
std::size_t token_start(std::string_view text, std::size_t offset);

// `offset` is the last byte that the parser read before it gave up, or the text's size when it reached the end.
JsonMistake explain_json_mistake(std::string_view text, std::size_t offset);

}  // namespace tessera::internal
