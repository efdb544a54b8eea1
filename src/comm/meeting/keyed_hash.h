// The cryptography that the meeting of ranks needs: random keys and keyed hashes. libsodium does the work;
// keyed_hash.cc is the only file that includes it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// A secret, a key, a random number used once, or a hash.
using Key = std::array<std::uint8_t, 32>;

Key random_key();

// BLAKE2b of the parts, each with its length: two lists of parts never hash alike because their bytes line up.
Key keyed_hash(const Key& key, std::initializer_list<std::string_view> parts);

// Takes as long whichever byte differs.
bool is_equal(const Key& a, const Key& b);

// Overwrites memory that held a secret; the compiler does not remove it.
void wipe(void* memory, std::size_t num_bytes);

std::string to_hex(const Key& key);
// 64 hexadecimal digits, or nothing.
std::optional<Key> key_from_hex(std::string_view text);

// The bytes of a key as they travel, and back; nothing if there are not exactly 32.
std::string_view bytes_of(const Key& key);
std::optional<Key> key_from_bytes(std::string_view bytes);

}  // namespace tessera
