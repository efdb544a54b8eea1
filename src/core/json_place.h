// Where a value is in JSON text, so that a mistake in its meaning can be reported by line and column too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera {

// From the outermost value inwards: {"data", 3, "paragraphs"}.
using JsonPath = std::vector<std::variant<std::string, std::size_t>>;

// "data[3].paragraphs"; "the file" for the outermost value.
std::string path_text(const JsonPath& path);

// The first byte of the value, or of the innermost value on the way to it that exists. The text must be JSON that
// parse_json() accepted, without a byte order mark. Runs only when something is wrong, so it need not be fast.
std::size_t offset_of(std::string_view text, const JsonPath& path);
// The same for the name before that value, where it has one.
std::size_t key_offset_of(std::string_view text, const JsonPath& path);

}  // namespace tessera
