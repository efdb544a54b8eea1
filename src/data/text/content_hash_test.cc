#include "data/text/content_hash.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(ContentHash, IsXxh64) {
  EXPECT_EQ(xxh64(""), 0xef46db3751d8e999);
  EXPECT_EQ(xxh64("abc"), 0x44bc2cf5ad770999);
  EXPECT_EQ(xxh64("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1);  // beyond 32 bytes, odd tail
  EXPECT_EQ(content_name("abc").size(), 32U);
  EXPECT_NE(content_name("abc"), content_name("abd"));
}

}  // namespace
}  // namespace tessera
