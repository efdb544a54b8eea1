#include "data/text/content_hash.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL  // no library to link
#include <xxhash.h>

namespace tessera {

std::uint64_t xxh64(std::string_view bytes, std::uint64_t seed) {
  return XXH64(bytes.data(), bytes.size(), seed);
}

std::string content_name(std::string_view bytes) {
  constexpr std::uint64_t kSecondSeed = 0x165667B19E3779F9;
  return fmt::format("{:016x}{:016x}", xxh64(bytes, 0), xxh64(bytes, kSecondSeed));
}

}  // namespace tessera
