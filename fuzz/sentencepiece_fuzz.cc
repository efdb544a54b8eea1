// tokenizer.model: what is no message of SentencePiece is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/error.h"
#include "data/tokenizer/sentencepiece.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tessera::internal::parse_sentencepiece({reinterpret_cast<const char*>(data), size}, "fuzz.model");
  } catch (const tessera::Error&) {  // a refusal, with its reason
  }
  return 0;
}
