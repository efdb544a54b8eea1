// For this layer's tests: reference files, temporary folders, and checks of refusal messages.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "core/error.h"

namespace tessera {

// tests/data/model_folder, made by tools/references/model_folder.py.
inline std::filesystem::path reference(const std::string& name) {
  return std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "model_folder" / name;
}

// A short string in pickle's protocol 2.
inline std::string pickled_text(const std::string& value) {
  return "X" + std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "tessera-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw Error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The message must contain `words`.
#define EXPECT_REFUSED(statement, words)                                                 \
  try {                                                                                  \
    static_cast<void>(statement);                                                        \
    ADD_FAILURE() << "not refused: " #statement;                                         \
  } catch (const ::tessera::UsageError& error) {                                         \
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what(); \
  }

}  // namespace tessera
