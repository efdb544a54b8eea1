#include "data/tokenizer/metaspace.h"

#include <gtest/gtest.h>

#include "data/tokenizer/replace.h"
#include "data/tokenizer/steps.h"
#include "support/message_of.h"

namespace tessera::internal {
namespace {

using Texts = std::vector<std::string>;

Metaspace read(const std::string& json) {
  const JsonText text(json, "t.json");
  return read_metaspace(text.root());
}

Texts pieces_of(const Metaspace& metaspace, std::string_view text, bool is_beginning = true) {
  Pieces pieces;
  pieces.begin(text, is_beginning);
  mark_spaces(metaspace, pieces);
  return {pieces.views.begin(), pieces.views.end()};
}

TEST(Metaspace, MarksEveryPieceTheFirstOneOrNone) {
  EXPECT_EQ(pieces_of({"_", PrependScheme::kAlways, false}, "a b", false), (Texts{"_a_b"}));
  EXPECT_EQ(pieces_of({"_", PrependScheme::kAlways, false}, " a b"), (Texts{"_a_b"}));
  EXPECT_EQ(pieces_of({"_", PrependScheme::kFirst, false}, "a b"), (Texts{"_a_b"}));
  EXPECT_EQ(pieces_of({"_", PrependScheme::kFirst, false}, "a b", false), (Texts{"a_b"}));
  EXPECT_EQ(pieces_of({"_", PrependScheme::kNever, false}, "a b"), (Texts{"a_b"}));
}

TEST(Metaspace, SplitsBeforeMarks) {
  EXPECT_EQ(pieces_of({"_", PrependScheme::kNever, true}, "a  b_c"), (Texts{"a", "_", "_b", "_c"}));
  EXPECT_EQ(pieces_of({"\u2581", PrependScheme::kAlways, true}, "a b"), (Texts{"\u2581a", "\u2581b"}));
}

TEST(Metaspace, DecodesMarksAsSpacesButForTheFirstTokens) {
  Texts tokens = {"_a_b", "_c"};
  unmark_spaces({"_", PrependScheme::kFirst, true}, tokens);
  EXPECT_EQ(tokens, (Texts{"ab", " c"}));
  tokens = {"_a", "_b"};
  unmark_spaces({"_", PrependScheme::kNever, true}, tokens);
  EXPECT_EQ(tokens, (Texts{" a", " b"}));
}

TEST(Metaspace, ReadsTheOldFormToo) {
  EXPECT_EQ(read(R"({"replacement": "_"})").prepend_scheme, PrependScheme::kAlways);
  EXPECT_TRUE(read(R"({"replacement": "_"})").splits);
  EXPECT_EQ(read(R"({"replacement": "_", "add_prefix_space": false})").prepend_scheme, PrependScheme::kNever);
  EXPECT_EQ(read(R"({"replacement": "_", "add_prefix_space": true, "prepend_scheme": "first", "split": false})").splits,
            false);
}

TEST(Metaspace, RefusesWhatContradictsItself) {
  EXPECT_EQ(message_of([] { read(R"({"replacement": "_", "add_prefix_space": false, "prepend_scheme": "first"})"); }),
            "t.json:1:67: prepend_scheme: \"add_prefix_space\" is false, so this can only be \"never\"");
  EXPECT_NE(message_of([] {
              read(R"({"replacement": "_", "prepend_scheme": "last"})");
            }).find("prepend_scheme: expected first, never or always, found \"last\""),
            std::string::npos);
  EXPECT_NE(message_of([] { read(R"({"replacement": "__"})"); }).find("replacement: expected one character"),
            std::string::npos);
}

TEST(ReplaceAll, ReplacesBytesAndLongerTexts) {
  EXPECT_EQ(replace_all(" a b ", " ", "\u2581"), "\u2581a\u2581b\u2581");
  EXPECT_EQ(replace_all("a b", " ", ""), "ab");
  EXPECT_EQ(replace_all("", " ", "x"), "");
  EXPECT_EQ(replace_all("aXXXb", "XX", "yyyyy"), "ayyyyyXb");
  EXPECT_EQ(replace_all("a b", " ", "12345"), "a12345b");
}

}  // namespace
}  // namespace tessera::internal
