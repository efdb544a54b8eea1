// The checksum of zip records and of W&B's files. Twenty lines of our own instead of zlib: nothing else here needs
// zlib, and its header would be one more package to install wherever Tessera is built.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Continues `so_far`, the checksum of the bytes before these; 0 to start.
std::uint32_t crc32(std::string_view bytes, std::uint32_t so_far = 0);

}  // namespace tessera
