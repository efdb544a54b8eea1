#include "data/tokenizer/characters.h"

#include <gtest/gtest.h>

namespace tessera::internal {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

std::string repeated(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += kReplacement;
  return text;
}

// The examples of Unicode's chapter 3 (tables 3-8 to 3-11), and what Python's errors="replace" makes of them.
TEST(Utf8, ReplacesEachMaximalIllFormedPart) {
  EXPECT_EQ(replace_ill_formed("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), repeated(8) + "A");
  EXPECT_EQ(replace_ill_formed("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), repeated(8) + "A");
  EXPECT_EQ(replace_ill_formed("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), repeated(5) + "A" + repeated(2) + "B");
  EXPECT_EQ(replace_ill_formed("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), repeated(4) + "A");
  EXPECT_EQ(replace_ill_formed("abc\xE2\x82"), "abc" + repeated(1));
}

TEST(Utf8, LeavesWellFormedTextAlone) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x99 eight bytes and more\xF4\x8F\xBF\xBF";
  EXPECT_EQ(num_well_formed_bytes(text), text.size());
  EXPECT_EQ(replace_ill_formed(text), text);
}

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(num_well_formed_bytes(text), text.size());
    ASSERT_EQ(utf8_decode(text.data()), c);
    ASSERT_EQ(utf8_length(static_cast<unsigned char>(text[0])), text.size());
    ASSERT_EQ(utf8_previous(text, text.size()), 0U);
  }
}

}  // namespace
}  // namespace tessera::internal
