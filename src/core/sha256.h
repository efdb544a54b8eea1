// SHA-256 (FIPS 180-4): digests that other programs can check.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  std::string hex();  // ends the digest: call it last

 private:
  void add_block(const unsigned char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_{};
  std::size_t num_pending_ = 0;
  std::uint64_t num_bytes_ = 0;
};

inline std::string sha256_hex(std::string_view bytes) {
  return Sha256().add(bytes).hex();
}

}  // namespace tessera
