// Looks for SQuAD where users keep it, for runs without --train_file.
#pragma once

#include <filesystem>
#include <string>

#include "core/environment.h"

namespace tessera {

struct FoundSquad {
  std::filesystem::path training, validation;  // validation is empty if it is not beside the other
};

// In `data_dir` (unless empty), data/ and squad/ of the folder `here`, and Hugging Face's cache of data sets. Throws
// UsageError that names the folders. If that cache has SQuAD as Arrow files, it also says how to make a file of them.
FoundSquad find_squad(const std::string& data_dir, const Environment& environment,
                      const std::filesystem::path& here = {});

}  // namespace tessera
