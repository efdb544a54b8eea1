// Checksums of the event files: CRC-32C (TensorBoard's) and CRC-32 (W&B's, zlib's).
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

std::uint32_t crc32c(std::string_view bytes);
std::uint32_t crc32_zlib(std::string_view bytes);

// TFRecord files store it rotated and shifted, so that a checksum of bytes that hold checksums keeps its worth.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tessera
