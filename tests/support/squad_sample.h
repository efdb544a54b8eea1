// For tests: the repository's samples of SQuAD.
#pragma once

#include <filesystem>
#include <string>

#include "data/text/squad.h"

namespace tessera {

inline std::filesystem::path squad_sample(const std::string& name) {
  return std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "squad" / name;
}

inline SquadFile read_squad(const std::filesystem::path& path) {
  return parse_squad(read_squad_bytes(path), path.string());
}

}  // namespace tessera
