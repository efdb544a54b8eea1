// Reads a gzip file with zlib itself.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <string>

namespace tessera {

inline std::string gunzip(const std::filesystem::path& path) {
  std::string text;
  const gzFile file = gzopen(path.c_str(), "rb");
  char part[65536];
  for (int n = gzread(file, part, sizeof part); n > 0; n = gzread(file, part, sizeof part)) {
    text.append(part, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(gzclose(file), Z_OK) << path;  // its checksum is right
  return text;
}

}  // namespace tessera
