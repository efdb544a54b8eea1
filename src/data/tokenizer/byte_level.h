// The characters that stand for bytes in vocabularies of this family: printable ones for themselves, others from
// U+0100.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::internal {

const std::array<char32_t, 256>& byte_characters();

// Each byte as its character, in UTF-8.
std::string bytes_to_characters(std::string_view bytes);
// The reverse; nothing if a character stands for no byte. The text is well-formed UTF-8.
std::optional<std::string> characters_to_bytes(std::string_view characters);

}  // namespace tessera::internal
