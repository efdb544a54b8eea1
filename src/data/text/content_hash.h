// Fast checksums of bytes, and names made from them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// XXH64, by the xxHash library: fast rather than secret, several GB/s.
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0);
// A name for contents: 32 hexadecimal digits, XXH64 twice with two seeds. Equal bytes have equal names, different bytes
// different ones (except by an accident of 1 in 2^128).
std::string content_name(std::string_view bytes);

}  // namespace tessera
