// tokenizer.json: whatever loads encodes and decodes a text without harm.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.h"
#include "core/log.h"
#include "data/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_quiet = (tessera::configure_log("error", -1), true);
  static_cast<void>(is_quiet);
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const tessera::Tokenizer tokenizer = tessera::Tokenizer::from_json(file, "fuzz.json");
    const auto ids = tokenizer.encode(
        "Hello  world's 12 \xC3\x85ngstr\xC3\xB6m <s>a b</s>\n\xE4\xBD\xA0\xE5\xA5\xBD \xF0\x9F\xA6\x99 "
        "\xFF\xE2\x82 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    tokenizer.decode(ids);
    tokenizer.decode(ids, true);
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
