// JSON text: what parses is the same after it is printed and parsed again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tessera::Json value = tessera::parse_json(text, "fuzz.json");
    // Compared as text: a NaN (from 1e999) would not equal itself.
    const std::string printed = value.dump();
    if (tessera::parse_json(printed, "printed").dump() != printed) std::abort();
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
