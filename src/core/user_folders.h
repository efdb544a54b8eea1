// Where a user's own files of Tessera lie.
#pragma once

#include <filesystem>
#include <optional>

#include "core/environment.h"

namespace tessera {

// $XDG_CONFIG_HOME/tessera, else ~/.config/tessera; nothing if neither variable is set.
std::optional<std::filesystem::path> config_folder(const Environment& environment);

}  // namespace tessera
