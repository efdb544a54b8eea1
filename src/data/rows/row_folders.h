// Folders with files of rows.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/environment.h"

namespace tessera {

// As find_row_files() says of a folder. Throws UsageError.
std::vector<std::filesystem::path> row_files_in(const std::filesystem::path& folder, const std::string& split);

// Of a data set in Hugging Face's caches: first the hub's files as they were downloaded, then the Arrow files that
// `datasets` made of them. Empty if it is in neither; `tried` then has both folders.
std::vector<std::filesystem::path> row_files_of_hub_name(const std::string& name, const Environment& environment,
                                                         const std::string& split, std::vector<std::string>& tried);

}  // namespace tessera
