// Names for contents: equal bytes have equal names, different bytes have different names (except by an accident of 1 in
// 2^128). Fast rather than secret: several GB/s, so that naming a data file takes less time than reading it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// XXH64, by the xxHash library.
std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed = 0);

// 32 hexadecimal digits: XXH64 twice, with two seeds.
std::string content_name(std::string_view bytes);

}  // namespace tessera
