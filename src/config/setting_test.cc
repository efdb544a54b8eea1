#include "config/setting.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

using Kind = Setting::Kind;

Setting unbound(Kind kind, SettingTraits traits = {}) {
  return Setting(
      kind, "name", [](const Setting::Value&) {}, std::move(traits));
}

std::string refusal(const Setting& setting, const std::string& text) {
  try {
    setting.parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

std::string round_trip(const Setting& setting, Kind kind, const std::string& text) {
  return Setting::canonical(kind, setting.parse(text));
}

TEST(Setting, BooleansAreReadAsHuggingFaceReadsThem) {
  for (const char* text : {"True", "true", "1", "yes", "Y", "on", "t"}) EXPECT_EQ(parse_bool(text), true) << text;
  for (const char* text : {"False", "false", "0", "no", "N", "off", "f"}) EXPECT_EQ(parse_bool(text), false) << text;
  for (const char* text : {"", "2", "maybe", " true"}) EXPECT_FALSE(parse_bool(text)) << text;
  EXPECT_EQ(refusal(unbound(Kind::kBool), "maybe"), "expected true or false");
}

TEST(Setting, IntegersAreHeldToTheirRange) {
  EXPECT_EQ(refusal(unbound(Kind::kInteger), "1.5"), "expected a whole number");
  const Setting setting = unbound(Kind::kInteger, {.at_least = 1, .at_most = 1'000'000});
  EXPECT_EQ(refusal(setting, "1"), "accepted");
  EXPECT_EQ(refusal(setting, "1000000"), "accepted");
  for (const char* text : {"0", "1000001", "-1", "x", "", "99999999999999999999"}) {
    EXPECT_EQ(refusal(setting, text), "expected a whole number from 1 to 1000000") << text;
  }
}

TEST(Setting, AWholeNumberThatDoesNotFitIsToldWhatDoes) {
  const auto of_32_bits = [](SettingTraits traits) {
    return Setting(
        Kind::kInteger, "n", [](const Setting::Value&) {}, std::move(traits), "", "", -2147483648LL, 2147483647);
  };
  EXPECT_EQ(refusal(of_32_bits({}), "2147483648"), "expected a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(refusal(of_32_bits({}), "2147483647"), "accepted");
  EXPECT_EQ(refusal(of_32_bits({.at_least = 1}), "0"), "expected a whole number of at least 1");
  EXPECT_EQ(refusal(of_32_bits({.at_least = 1}), "99999999999999999999"),
            "expected a whole number from 1 to 2147483647");
}

TEST(Setting, RealsAreFiniteAndPrintInTheShortestForm) {
  const Setting setting = unbound(Kind::kReal);
  EXPECT_EQ(round_trip(setting, Kind::kReal, "0.00005"), "5e-05");
  EXPECT_EQ(round_trip(setting, Kind::kReal, "0.1"), "0.1");
  EXPECT_EQ(round_trip(setting, Kind::kReal, "0.30000000000000004"), "0.30000000000000004");
  EXPECT_EQ(refusal(setting, "nan"), "expected a number");
  EXPECT_EQ(refusal(setting, "inf"), "expected a number");
  EXPECT_EQ(refusal(unbound(Kind::kReal, {.at_least = 0, .at_most = 0.5}), "-1"), "expected a number from 0 to 0.5");
}

TEST(Setting, SizesAndDurationsShowTheirBoundsInTheirOwnUnits) {
  const Setting size = unbound(Kind::kBytes, {.at_least = 1024, .at_most = 1 << 30});
  EXPECT_EQ(refusal(size, "2G"), "expected a size such as 512K or 4G, 1K to 1G");
  EXPECT_EQ(refusal(size, "-1"), "expected a size such as 512K or 4G, 1K to 1G");
  EXPECT_EQ(round_trip(size, Kind::kBytes, "0.5MiB"), "512K");
  const Setting duration = unbound(Kind::kDuration, {.at_least = 0.5});
  EXPECT_EQ(refusal(duration, "100ms"), "expected a duration such as 30s or 10m, at least 500ms");
  EXPECT_EQ(round_trip(duration, Kind::kDuration, "600"), "10m");
}

TEST(Setting, AWrongChoiceIsToldTheNearestRightOne) {
  const Setting setting = unbound(Kind::kText, {.choices = {"full_shard", "no_shard"}});
  EXPECT_EQ(refusal(setting, "full_shrad"), "expected one of full_shard, no_shard; did you mean full_shard?");
  EXPECT_EQ(refusal(setting, "zero3"), "expected one of full_shard, no_shard");
}

TEST(Setting, ChoicesOfNumbersAreComparedByValue) {
  const Setting setting = unbound(Kind::kInteger, {.choices = {"1", "2"}});
  EXPECT_EQ(refusal(setting, "01"), "accepted");
  EXPECT_EQ(refusal(setting, "3"), "expected one of 1, 2");
}

TEST(Setting, AWrongPresetIsOurMistake) {
  EXPECT_THROW(unbound(Kind::kInteger, {.preset = "0", .at_least = 1}), Error);
  EXPECT_THROW(unbound(Kind::kText, {.preset = "c", .choices = {"a", "b"}}), Error);
  try {
    unbound(Kind::kBytes, {.preset = "4X"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the preset of the setting name is wrong: expected a size such as 512K or 4G");
    EXPECT_EQ(error.status(), ExitStatus::kFailure);
  }
}

}  // namespace
}  // namespace tessera
