// The checksum of zip records and of W&B's files. Our own twenty lines rather than zlib's: nothing else here needs
// zlib, and its header would be one more package to install wherever Tessera is built.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// Continues `so_far`, the checksum of what came before; 0 at the beginning.
std::uint32_t crc32(std::string_view bytes, std::uint32_t so_far = 0);

}  // namespace tessera
