// The checksum of TensorBoard's event files: CRC-32C.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

std::uint32_t crc32c(std::string_view bytes);

// TFRecord files store it rotated and shifted, so that checksums of data that contains checksums stay meaningful.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tessera
