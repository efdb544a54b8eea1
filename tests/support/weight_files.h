// For this layer's tests: reference files, and checks of refusal messages.
#pragma once

#include <gtest/gtest.h>

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

// The message must contain `words`.
#define EXPECT_REFUSED(statement, words)                                                 \
  try {                                                                                  \
    static_cast<void>(statement);                                                        \
    ADD_FAILURE() << "not refused: " #statement;                                         \
  } catch (const ::tessera::UsageError& error) {                                         \
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what(); \
  }

}  // namespace tessera
