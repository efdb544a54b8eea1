// The job script that a user's word means. (no torch)
#pragma once

#include <filesystem>

namespace tessera {

// A file is itself; of a folder, the one file in it with #SBATCH lines. Throws UsageError if there is none, if there
// are several (naming them), and for a file that is no text.
std::filesystem::path find_script(const std::filesystem::path& path);

}  // namespace tessera
