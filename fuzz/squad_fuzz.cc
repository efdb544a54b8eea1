// SQuAD files in all their forms: rows with a passage each, or a refusal that says where.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "data/text/squad.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const tessera::SquadFile file = tessera::parse_squad(text, "fuzz.json");
    if (file.rows.empty()) std::abort();
    for (const tessera::SquadRow& row : file.rows) {
      if (row.context == nullptr) std::abort();
      for (const tessera::SquadAnswer& answer : row.answers) {
        if (answer.start < -1) std::abort();
      }
    }
  } catch (const tessera::Error& error) {  // a refusal, which begins with the file's name
    if (!std::string_view(error.what()).starts_with("fuzz.json:")) std::abort();
  }
  return 0;
}
