// For tests: the repository's samples of SQuAD.
#pragma once

#include <filesystem>
#include <string>

namespace tessera {

inline std::filesystem::path squad_sample(const std::string& name) {
  return std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "squad" / name;
}

}  // namespace tessera
