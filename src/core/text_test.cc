#include "core/text.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Text, TrimRemovesSpaceAtBothEndsOnly) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
}

TEST(Text, SplitKeepsEmptyPartsAndJoinUndoesIt) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(split("a,", ','), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(join(split("a,,b,", ','), ","), "a,,b,");
  EXPECT_EQ(join({}, ","), "");
}

TEST(Text, LowerCaseLeavesOtherBytesAlone) {
  EXPECT_EQ(lower_case("FP16_\xc3\x84"), "fp16_\xc3\x84");
}

TEST(Text, NumbersAreTheWholeTextOrNothing) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("9223372036854775807"), 9223372036854775807LL);
  for (const char* text : {"", " 12", "12 ", "12x", "1.0", "0x10", "9223372036854775808", "-"}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
  EXPECT_EQ(parse_real("5e-5"), 5e-5);
  EXPECT_EQ(parse_real("-1"), -1.0);
  EXPECT_EQ(parse_real(".5"), 0.5);
  for (const char* text : {"", " 1", "1 ", "1x", "1e", "1e999", "nan", "inf", "-inf"}) {
    EXPECT_FALSE(parse_real(text)) << text;
  }
}

TEST(Text, NearestAllowsAThirdOfTheWord) {
  const std::vector<std::string> names = {"comm_timeout", "minbytes", "maxbytes", "fp16", "lr"};
  EXPECT_EQ(nearest("comm_timout", names), "comm_timeout");
  EXPECT_EQ(nearest("minbyte", names), "minbytes");
  EXPECT_EQ(nearest("fp61", names), "fp16");  // two swapped neighbours count as one edit
  EXPECT_EQ(nearest("fp16", names), "fp16");
  EXPECT_FALSE(nearest("ls", names));  // one of two letters is more than a third
  EXPECT_FALSE(nearest("seed", names));
  EXPECT_FALSE(nearest("", names));
  EXPECT_FALSE(nearest("anything", {}));
}

TEST(Text, NearestTakesTheOnlyOneThatBeginsSo) {
  const std::vector<std::string> names = {"nproc_per_node", "nnodes", "node_rank", "minbytes", "min_busbw"};
  EXPECT_EQ(nearest("nproc", names), "nproc_per_node");
  EXPECT_EQ(nearest("nn", names), "nnodes");
  EXPECT_FALSE(nearest("min", names));  // two begin with it
  EXPECT_FALSE(nearest("m", {"minbytes"}));
}

TEST(DidYouMean, NamesTheNearestOrNothing) {
  EXPECT_EQ(did_you_mean("fp61", {"fp16", "bf16"}), ", did you mean 'fp16'?");
  EXPECT_EQ(did_you_mean("fp61", {"fp16", "bf16"}, "; did you mean --{}?"), "; did you mean --fp16?");
  EXPECT_EQ(did_you_mean("seed", {"fp16", "bf16"}), "");
}

TEST(Text, WhatIsPrintableSteersNoTerminal) {
  EXPECT_EQ(printable("plain \xc3\xa4"), "plain \xc3\xa4");
  EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(printable(std::string(201, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(printable("ab\xc3\xa4", 3), "ab...");  // no half characters
  EXPECT_EQ(printable("ab\xc3\xa4 c", 4), "ab\xc3\xa4...");
}

TEST(Text, RangesAreJoinedWhereNumbersFollowEachOther) {
  EXPECT_EQ(format_ranges({0, 1, 2, 5}), "0-2, 5");
  EXPECT_EQ(format_ranges({3}), "3");
  EXPECT_EQ(format_ranges({0, 2, 4, 5}), "0, 2, 4-5");
  EXPECT_EQ(format_ranges({}), "");
}

}  // namespace
}  // namespace tessera
