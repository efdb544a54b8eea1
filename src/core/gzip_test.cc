#include "core/gzip.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <string>

#include "core/error.h"
#include "core/file.h"

namespace tessera {
namespace {

std::string unpacked(const std::filesystem::path& path) {
  std::string text;
  const gzFile file = gzopen(path.c_str(), "rb");
  char part[4096];
  for (int n = gzread(file, part, sizeof part); n > 0; n = gzread(file, part, sizeof part)) {
    text.append(part, static_cast<std::size_t>(n));
  }
  EXPECT_EQ(gzclose(file), Z_OK);  // its checksum is right
  return text;
}

TEST(Gzip, IsReadBackByZlib) {
  const auto path = std::filesystem::temp_directory_path() / ("tessera-gzip-" + std::to_string(::getpid()));
  for (const std::string& text : {std::string(), std::string("a"), std::string(300'000, 'x') + "end"}) {
    write_gzip_file(path, text);
    EXPECT_EQ(unpacked(path), text);
  }
  EXPECT_LT(read_file(path).size(), 5000u);
  EXPECT_EQ(read_file(path).substr(0, 2), "\x1f\x8b");
  std::filesystem::remove(path);
  EXPECT_THROW(write_gzip_file("/no/such/folder/file.gz", "a"), Error);
}

}  // namespace
}  // namespace tessera
