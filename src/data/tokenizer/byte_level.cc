#include "data/tokenizer/byte_level.h"

#include "data/tokenizer/utf8.h"

namespace tessera::internal {
namespace {

constexpr int kNone = -1;
constexpr char32_t kNumCharacters = 0x144;  // the 68 bytes that are not printable map to 0x100 and up

bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

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
