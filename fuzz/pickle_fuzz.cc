// Pickled state dicts: no code runs, and what is accepted survives a round trip through our own pickle.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "weights/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view pickle(reinterpret_cast<const char*>(data), size);
  try {
    const auto tensors = tessera::parse_pickled_state_dict(pickle, "fuzz.pkl");
    const auto again = tessera::parse_pickled_state_dict(tessera::compose_pickled_state_dict(tensors), "composed");
    if (again.size() != tensors.size()) std::abort();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (again[i].name != tensors[i].name || again[i].type != tensors[i].type || again[i].shape != tensors[i].shape ||
          again[i].strides != tensors[i].strides || again[i].offset != tensors[i].offset ||
          again[i].storage_numel != tensors[i].storage_numel || again[i].storage_key != tensors[i].storage_key) {
        std::abort();
      }
    }
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
