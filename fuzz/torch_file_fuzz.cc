// Files written by torch.save: every element of an accepted tensor lies in the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "weights/torch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    for (const tessera::WeightEntry& entry : tessera::parse_torch_file(file, "fuzz.bin")) {
      if (entry.numel < 0 || entry.strides.size() != entry.shape.size()) std::abort();
      std::int64_t last = 0;
      for (std::size_t i = 0; i < entry.shape.size(); ++i) {
        if (entry.shape[i] < 0 || entry.strides[i] < 0) std::abort();
        if (entry.numel > 0) last += (entry.shape[i] - 1) * entry.strides[i];
      }
      const std::int64_t end = entry.offset_bytes + (entry.numel > 0 ? (last + 1) * bytes_of(entry.type) : 0);
      if (entry.offset_bytes < 0 || end > static_cast<std::int64_t>(size)) std::abort();
    }
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
