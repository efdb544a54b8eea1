// Which split a file belongs to, as `datasets` reads it from names.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tessera {

// "train", "validation", "test", or what stands before -00000-of-00002 in a folder data/; "": the name says nothing.
// `file` is relative to the data's folder.
std::string split_in_name(const std::filesystem::path& file);

// How `datasets` calls its files in its cache: NAME-SPLIT.arrow, NAME-SPLIT-00000-of-00002.arrow.
std::string split_in_cached_name(const std::filesystem::path& file);

using FilesBySplit = std::map<std::string, std::vector<std::filesystem::path>>;

// As find_row_files() says. `place` is what messages call their folder.
const std::vector<std::filesystem::path>& choose_split(const FilesBySplit& files, const std::string& split,
                                                       const std::string& place);

}  // namespace tessera
