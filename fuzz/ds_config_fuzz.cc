// DeepSpeed's and FSDP's files: settings that the schema knows, or a refusal that says where.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "settings/foreign_config.h"

namespace {

template <typename Read>
void check(Read read, const std::string& text) {
  try {
    const tessera::ForeignConfig config = read("fuzz.json", text);
    for (const tessera::ForeignValue& value : config.values) {
      if (value.setting.empty() || value.key.empty() || !value.place.starts_with("fuzz.json")) std::abort();
    }
  } catch (const tessera::Error& error) {  // a refusal, which begins with the file's name
    if (!std::string_view(error.what()).starts_with("fuzz.json:")) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(tessera::read_ds_config, text);
  check(tessera::read_fsdp_config, text);
  return 0;
}
