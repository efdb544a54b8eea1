// Where Hugging Face's programs keep what they downloaded.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/environment.h"

namespace tessera {

// A variable with a path, whose ~ is the user's home, as Hugging Face reads it.
std::optional<std::filesystem::path> hugging_face_path(const Environment& environment, const char* name);

// HF_HOME, else XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface.
std::filesystem::path hugging_face_home(const Environment& environment);
// Of files as the hub has them: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else hub/ of the home.
std::filesystem::path hub_cache(const Environment& environment);
// Of the Arrow files that `datasets` makes of them: HF_DATASETS_CACHE, else datasets/ of the home.
std::filesystem::path datasets_cache(const Environment& environment);

// organisation/name or name, of the characters that the hub allows: anything else can only be a path.
bool is_hub_name(const std::string& name);
// "models--bigscience--bloom-560m"; `kind` is models or datasets.
std::string hub_folder_name(const char* kind, const std::string& hub_name);
// The folder of the revision that refs/main of such a folder names; nothing if it is not there.
std::optional<std::filesystem::path> cached_snapshot(const std::filesystem::path& hub_folder);

}  // namespace tessera
