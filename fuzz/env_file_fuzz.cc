// Files of export lines: names that a shell accepts, lines in order, or a refusal that says where.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "settings/env_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const tessera::Environment environment({{"HOME", "/home/u"}, {"PWD", "/run"}});
  try {
    std::size_t line = 1;
    for (const tessera::EnvFileEntry& entry : tessera::parse_env_file(text, "fuzz.sh", environment)) {
      if (entry.name.empty() || entry.line < line) std::abort();
      line = entry.line;
      for (const char c : entry.name) {
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!is_letter) std::abort();
      }
    }
  } catch (const tessera::Error& error) {  // a refusal, which begins with the file's name
    if (!std::string_view(error.what()).starts_with("fuzz.sh:")) std::abort();
  }
  return 0;
}
