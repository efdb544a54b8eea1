// Reads and writes whole files. A write is atomic: readers see the old file or the new one, never a part.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

// Throws UsageError naming the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

// Writes beside the target, flushes to disk, renames, flushes the folder. A new file has mode 0644 less the umask, an
// old one keeps its mode; a link stays a link. Throws Error with path and reason; then the old file is untouched and
// nothing is left beside it. The one exception is a folder that cannot be flushed: the new file is then in place, and
// the message says so.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Makes the renames within `folder` survive a power cut. Throws Error.
void flush_folder(const std::filesystem::path& folder);

}  // namespace tessera
