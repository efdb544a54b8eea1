#include "core/gzip.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "core/file.h"
#include "support/gunzip.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

TEST(Gzip, IsReadBackByZlib) {
  const TestFolder folder;
  const std::filesystem::path path = folder / "file.gz";
  for (const std::string& text : {std::string(), std::string("a"), std::string(300'000, 'x') + "end"}) {
    write_gzip_file(path, text);
    EXPECT_EQ(gunzip(path), text);
  }
  EXPECT_LT(read_file(path).size(), 5000u);
  EXPECT_EQ(read_file(path).substr(0, 2), "\x1f\x8b");
  EXPECT_THROW(write_gzip_file("/no/such/folder/file.gz", "a"), Error);
}

}  // namespace
}  // namespace tessera
