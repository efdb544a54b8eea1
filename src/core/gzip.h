// Files compressed as gzip does.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera {

// Whole or not at all, like write_file_atomically. Throws Error naming the file.
void write_gzip_file(const std::filesystem::path& path, std::string_view content);

}  // namespace tessera
