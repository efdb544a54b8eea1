// Safetensors files: what is accepted lies inside the file and survives a round trip through a header of our own.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const tessera::SafetensorsHeader header = tessera::parse_safetensors(file, "fuzz.safetensors");
    std::int64_t data_bytes = 0;
    for (const tessera::WeightEntry& entry : header.entries) {
      if (entry.offset_bytes < 8 || entry.num_bytes() < 0) std::abort();
      if (entry.offset_bytes + entry.num_bytes() > static_cast<std::int64_t>(size)) std::abort();
      data_bytes += entry.num_bytes();
    }
    std::string again = tessera::compose_safetensors_header(header.entries, header.metadata);
    again.append(static_cast<std::size_t>(data_bytes), '\0');
    const tessera::SafetensorsHeader second = tessera::parse_safetensors(again, "composed");
    if (second.entries.size() != header.entries.size() || second.metadata != header.metadata) std::abort();
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
