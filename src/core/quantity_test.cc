#include "core/quantity.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

TEST(Quantity, SizesArePowersOf1024InEverySpelling) {
  EXPECT_EQ(parse_bytes("0"), 0);
  EXPECT_EQ(parse_bytes("17"), 17);
  EXPECT_EQ(parse_bytes("17B"), 17);
  for (const char* text : {"4G", "4g", "4GB", "4gb", "4GiB", "4gib", "4096M", "4.0G"}) {
    EXPECT_EQ(parse_bytes(text), 4 * kGi) << text;
  }
  EXPECT_EQ(parse_bytes("3K"), 3072);
  EXPECT_EQ(parse_bytes("2T"), 2048 * kGi);
}

TEST(Quantity, FractionsAreRoundedToWholeBytes) {
  EXPECT_EQ(parse_bytes("1.5G"), 3 * kGi / 2);
  EXPECT_EQ(parse_bytes("0.0009765625G"), 1 << 20);
  EXPECT_EQ(parse_bytes("0.1K"), 102);
  EXPECT_EQ(parse_duration("0.5s"), milliseconds(500));
  EXPECT_EQ(parse_duration("0.1h"), milliseconds(360'000));
}

TEST(Quantity, RefusesFractionsOfTheSmallestUnit) {
  EXPECT_EQ(parse_bytes("500.0"), 500);
  for (const char* text : {"1.5", "1.5B", "0.00001K"}) EXPECT_THROW(parse_bytes(text), UsageError) << text;
  for (const char* text : {"0.5ms", "0.0001s"}) EXPECT_THROW(parse_duration(text), UsageError) << text;
}

TEST(Quantity, RefusesNegativeSizes) {
  for (const char* text : {"-1", "-4G", "-0"}) EXPECT_THROW(parse_bytes(text), UsageError) << text;
  EXPECT_THROW(parse_duration("-1s"), UsageError);
}

TEST(Quantity, RefusesWhatIsNoQuantity) {
  for (const char* text : {"", "G", ".", ".5G", "1.G", "1..5G", "nan", "inf", "1e3", "4X", "4iB", "4Gi", "4 G", " 4G",
                           "4G ", "4GBB", "0x10", "+4"}) {
    EXPECT_THROW(parse_bytes(text), UsageError) << text;
  }
  for (const char* text : {"", "s", "nan", "inf", "4d", "1 s", "1mins", "1e3s"}) {
    EXPECT_THROW(parse_duration(text), UsageError) << text;
  }
}

TEST(Quantity, RefusesOverflowAndTakesTheLargest) {
  EXPECT_EQ(parse_bytes("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"9223372036854775808", "8388608T", "99999999999999999999G"}) {
    EXPECT_THROW(parse_bytes(text), UsageError) << text;
  }
  EXPECT_EQ(parse_bytes("8388607T"), std::int64_t{8388607} << 40);
  EXPECT_THROW(parse_duration("9223372036854775807"), UsageError);
}

TEST(Quantity, TheMessageShowsTheTextAndTheAllowedForms) {
  try {
    parse_bytes("4X");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "'4X' is not a size: expected bytes, or a number with K, M, G or T (powers of 1024), such as 512K or 1.5G");
  }
}

TEST(Quantity, DurationsWithoutSuffixAreSeconds) {
  EXPECT_EQ(parse_duration("30"), milliseconds(30'000));
  EXPECT_EQ(parse_duration("250ms"), milliseconds(250));
  EXPECT_EQ(parse_duration("10m"), milliseconds(600'000));
  EXPECT_EQ(parse_duration("10MIN"), milliseconds(600'000));
  EXPECT_EQ(parse_duration("2h"), milliseconds(7'200'000));
}

TEST(Quantity, FormatsInTheLargestUnitThatDivides) {
  EXPECT_EQ(format_bytes(4 * kGi), "4G");
  EXPECT_EQ(format_bytes(3 * kGi / 2), "1536M");
  EXPECT_EQ(format_bytes(1000), "1000");
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_duration(milliseconds(90'000)), "90s");
  EXPECT_EQ(format_duration(milliseconds(600'000)), "10m");
  EXPECT_EQ(format_duration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(format_duration(milliseconds(7'200'000)), "2h");
  EXPECT_EQ(format_duration(milliseconds(0)), "0s");
}

TEST(Quantity, WhatIsFormattedReadsBackExactly) {
  for (int shift = 0; shift < 63; ++shift) {
    for (int nudge : {-1, 0, 1}) {
      const std::int64_t value = (std::int64_t{1} << shift) + nudge;
      EXPECT_EQ(parse_bytes(format_bytes(value)), value);
      EXPECT_EQ(parse_duration(format_duration(milliseconds(value))), milliseconds(value));
    }
  }
}

TEST(Quantity, HumanBytesAreRounded) {
  EXPECT_EQ(human_bytes(17), "17 B");
  EXPECT_EQ(human_bytes(3 * kGi / 2), "1.5 GiB");
  EXPECT_EQ(human_bytes(std::int64_t{312} << 20), "312 MiB");
  EXPECT_EQ(human_bytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(std::numeric_limits<std::int64_t>::max()), "8 EiB");
}

}  // namespace
}  // namespace tessera
