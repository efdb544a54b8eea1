#include "core/crc32.h"

#include <array>
#include <cstddef>

namespace tessera {

namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320;  // reflected

// Row k advances a byte that k more bytes follow: eight bytes take eight independent look-ups.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (std::size_t row = 1; row < tables.size(); ++row) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[row - 1][byte];
      tables[row][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32(std::string_view bytes, std::uint32_t so_far) {
  std::uint32_t value = ~so_far;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    const std::uint32_t low = value ^ (byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24);
    value = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
            kTables[4][low >> 24] ^ kTables[3][byte(i + 4)] ^ kTables[2][byte(i + 5)] ^ kTables[1][byte(i + 6)] ^
            kTables[0][byte(i + 7)];
  }
  for (; i < bytes.size(); ++i) value = (value >> 8) ^ kTables[0][(value ^ byte(i)) & 0xff];
  return ~value;
}

}  // namespace tessera
