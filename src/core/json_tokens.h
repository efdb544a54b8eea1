// Where something is in JSON text. A parser knows the offset of a mistake; people want line, column and "expected ','
// or '}', found ...". Runs only when something is wrong, so it need not be fast.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

// The first byte of the token that holds `offset`.
std::size_t token_start(std::string_view text, std::size_t offset);

// `offset` is the last byte that the parser read before it gave up, or the text's size when it reached the end.
JsonMistake explain_json_mistake(std::string_view text, std::size_t offset, JsonComments comments);

// Where a value and the name before it begin; without a name, both are the value's.
struct ValuePlace {
  std::size_t value, key;
};

// `path` counts members and elements from the outermost value inwards: {1, 0} is the first one in the second one. The
// text must be JSON that parse_json() accepted, and must hold that value.
ValuePlace find_value(std::string_view text, const std::vector<std::size_t>& path);

}  // namespace tessera::internal
