// Characters as bytes: UTF-8, and the characters that stand for bytes in vocabularies of the byte-level family.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::internal {

// The number of bytes of the character that begins with `lead`, in well-formed text.
inline std::size_t utf8_length(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

// The character at `at`, of utf8_length() bytes. The text is well-formed, so nothing is checked.
inline char32_t utf8_decode(const char* at) {
  const auto* p = reinterpret_cast<const unsigned char*>(at);
  if (p[0] < 0x80) return p[0];
  if (p[0] < 0xE0) return static_cast<char32_t>((p[0] & 0x1F) << 6 | (p[1] & 0x3F));
  if (p[0] < 0xF0) return static_cast<char32_t>((p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F));
  return static_cast<char32_t>((p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F));
}

// The start of the character that ends before `end`; `end` is not the text's beginning.
inline std::size_t utf8_previous(std::string_view text, std::size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  return end;
}

void append_utf8(std::string& text, char32_t character);
std::u32string to_utf32(std::string_view well_formed);

// The number of leading bytes that are well-formed UTF-8: all of them, or up to the first that is not.
std::size_t num_well_formed_bytes(std::string_view text);

// Each maximal ill-formed part becomes one U+FFFD, as Unicode recommends (chapter 3, 'U+FFFD substitution of maximal
// subparts') and as Python's errors="replace" and Rust's from_utf8_lossy do.
std::string replace_ill_formed(std::string_view text);

// The characters that stand for bytes: printable ones for themselves, others from U+0100.
const std::array<char32_t, 256>& byte_characters();

// Each byte as its character, in UTF-8.
std::string bytes_to_characters(std::string_view bytes);
// The reverse; nothing if a character stands for no byte. The text is well-formed UTF-8.
std::optional<std::string> characters_to_bytes(std::string_view characters);

}  // namespace tessera::internal
