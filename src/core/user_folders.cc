#include "core/user_folders.h"

namespace tessera {

std::optional<std::filesystem::path> config_folder(const Environment& environment) {
  if (const auto config = environment.find("XDG_CONFIG_HOME")) return std::filesystem::path(*config) / "tessera";
  if (const auto home = environment.find("HOME")) return std::filesystem::path(*home) / ".config" / "tessera";
  return std::nullopt;
}

}  // namespace tessera
