// SHA-256, by libsodium: digests of results that tools/references computed too.
#pragma once

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <string>
#include <string_view>

namespace tessera {

class Sha256 {
 public:
  Sha256() { crypto_hash_sha256_init(&state_); }
  Sha256& add(std::string_view bytes) {
    crypto_hash_sha256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    return *this;
  }
  std::string hex() {  // ends the digest: call it last
    std::array<unsigned char, crypto_hash_sha256_BYTES> digest;
    crypto_hash_sha256_final(&state_, digest.data());
    return fmt::format("{:02x}", fmt::join(digest, ""));
  }

 private:
  crypto_hash_sha256_state state_;
};

inline std::string sha256_hex(std::string_view bytes) {
  return Sha256().add(bytes).hex();
}

}  // namespace tessera
