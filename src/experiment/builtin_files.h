// The repository's experiments/ folder, embedded by the build: nothing has to be installed or found. (no torch)
#pragma once

#include <string_view>
#include <vector>

namespace tessera {

struct BuiltinFile {
  std::string_view path;  // within experiments/: "ddp.json", "ds_configs/zero2.json"
  std::string_view content;
};

const std::vector<BuiltinFile>& builtin_files();

}  // namespace tessera
