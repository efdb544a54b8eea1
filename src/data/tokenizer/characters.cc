#include "data/tokenizer/characters.h"

#include <cstring>

namespace tessera::internal {
namespace {

struct Sequence {
  std::size_t num_bytes;
  bool well_formed;
};

// The sequence at `at`: a whole character, or the longest part that could begin one (at least one byte).
Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t length = utf8_length(lead);
  // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
  unsigned char lowest = 0x80, highest = 0xBF;
  if (lead == 0xE0) lowest = 0xA0;
  if (lead == 0xED) highest = 0x9F;
  if (lead == 0xF0) lowest = 0x90;
  if (lead == 0xF4) highest = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || byte(at + i) < lowest || byte(at + i) > highest) return {i, false};
    lowest = 0x80, highest = 0xBF;
  }
  return {length, true};
}

constexpr int kNone = -1;
constexpr char32_t kNumCharacters = 0x144;  // the 68 bytes that are not printable map to 0x100 and up

bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

std::u32string to_utf32(std::string_view text) {
  std::u32string characters;
  characters.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); at += utf8_length(static_cast<unsigned char>(text[at]))) {
    characters += utf8_decode(text.data() + at);
  }
  return characters;
}

std::size_t num_well_formed_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight = 0;  // usually ASCII
    while (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080ULL) != 0) break;
      at += sizeof eight;
    }
    if (at == text.size()) break;
    const Sequence sequence = sequence_at(text, at);
    if (!sequence.well_formed) return at;
    at += sequence.num_bytes;
  }
  return text.size();
}

std::string replace_ill_formed(std::string_view text) {
  std::string result;
  result.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t good = num_well_formed_bytes(text.substr(at));
    result += text.substr(at, good);
    at += good;
    if (at == text.size()) break;
    result += "\xEF\xBF\xBD";  // U+FFFD
    at += sequence_at(text, at).num_bytes;
  }
  return result;
}

const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> characters = [] {
    std::array<char32_t, 256> table{};
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) table[byte] = is_printable(byte) ? byte : next++;
    return table;
  }();
  return characters;
}

std::string bytes_to_characters(std::string_view bytes) {
  std::string characters;
  characters.reserve(2 * bytes.size());
  for (const char byte : bytes) append_utf8(characters, byte_characters()[static_cast<unsigned char>(byte)]);
  return characters;
}

std::optional<std::string> characters_to_bytes(std::string_view characters) {
  static const std::array<int, kNumCharacters> bytes = [] {
    std::array<int, kNumCharacters> table{};
    table.fill(kNone);
    for (int byte = 0; byte < 256; ++byte) table[byte_characters()[static_cast<std::size_t>(byte)]] = byte;
    return table;
  }();
  std::string result;
  for (std::size_t at = 0; at < characters.size(); at += utf8_length(static_cast<unsigned char>(characters[at]))) {
    const char32_t c = utf8_decode(characters.data() + at);
    if (c >= kNumCharacters || bytes[c] == kNone) return std::nullopt;
    result += static_cast<char>(bytes[c]);
  }
  return result;
}

}  // namespace tessera::internal
