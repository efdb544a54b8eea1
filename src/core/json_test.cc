#include "core/json.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_json(text, "ds.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Json, KeepsKeysInTheOrderOfTheFile) {
  const Json value = parse_json(R"({"z": 1, "a": [true, null, -2.5, "x"], "m": {"k": {}}})", "ds.json");
  EXPECT_EQ(value.dump(), R"({"z":1,"a":[true,null,-2.5,"x"],"m":{"k":{}}})");
  EXPECT_EQ(value["a"][2], -2.5);
}

TEST(Json, NumbersKeepTheirKindAndAllTheirDigits) {
  EXPECT_TRUE(parse_json("1", "x").is_number_integer());
  EXPECT_TRUE(parse_json("5e8", "x").is_number_float());
  EXPECT_EQ(parse_json("9223372036854775807", "x").get<std::int64_t>(), 9223372036854775807);
  EXPECT_EQ(parse_json("18446744073709551615", "x").get<std::uint64_t>(), 18446744073709551615u);
}

TEST(Json, SkipsAByteOrderMark) {
  EXPECT_EQ(parse_json("\xef\xbb\xbf[1]", "x").size(), 1u);
}

TEST(Json, AMistakeIsNamedByLineAndColumn) {
  EXPECT_EQ(refusal("{\n  \"a\": 1\n  \"b\": 2\n}"), "ds.json:3:3: expected ',' or '}', found \"b\"");
  EXPECT_EQ(refusal("{\"a\" 1}"), "ds.json:1:6: expected ':', found '1'");
  EXPECT_EQ(refusal("{\"a\": }"), "ds.json:1:7: expected a value, found '}'");
  EXPECT_EQ(refusal("{\"a\": 1,}"), "ds.json:1:9: expected a key in double quotes, found '}'");
  EXPECT_EQ(refusal("{a: 1}"), "ds.json:1:2: expected a key in double quotes or '}', found 'a'");
  EXPECT_EQ(refusal("[1 2]"), "ds.json:1:4: expected ',' or ']', found '2'");
  EXPECT_EQ(refusal("[1,]"), "ds.json:1:4: expected a value, found ']'");
  EXPECT_EQ(refusal("[,]"), "ds.json:1:2: expected a value or ']', found ','");
  EXPECT_EQ(refusal("[1}"), "ds.json:1:3: expected ',' or ']', found '}'");
  EXPECT_EQ(refusal("{} {}"), "ds.json:1:4: expected the end of the text, found '{'");
  EXPECT_EQ(refusal("{\"a\": \"b\" \"c\": 1}"), "ds.json:1:11: expected ',' or '}', found \"c\"");
}

TEST(Json, ColumnsCountCharactersNotBytes) {
  EXPECT_EQ(refusal("[\"\xc3\xa4\xc3\xb6\" x]"), "ds.json:1:7: expected ',' or ']', found 'x'");
}

TEST(Json, TheEndOfTheTextIsNamed) {
  EXPECT_EQ(refusal(""), "ds.json:1:1: expected a value, found the end of the text");
  EXPECT_EQ(refusal("{\"a\": 1\n"), "ds.json:2:1: expected ',' or '}', found the end of the text");
  EXPECT_EQ(refusal("{\"a"), "ds.json:1:2: expected '\"' at the end of this string, found the end of the text");
}

TEST(Json, WrongWordsAndNumbersAreShownWhole) {
  EXPECT_EQ(refusal("{\"a\": True}"), "ds.json:1:7: expected a value, found 'True'");
  EXPECT_EQ(refusal("[nul, 1]"), "ds.json:1:2: expected a value or ']', found 'nul'");
  EXPECT_EQ(refusal("[1, // two\n2]"), "ds.json:1:5: expected a value, found '//'");
  EXPECT_EQ(refusal("[NaN]"), "ds.json:1:2: expected a value or ']', found 'NaN'");
  EXPECT_EQ(refusal("[-]"), "ds.json:1:2: expected a value or ']', found '-'");
  for (const char* number : {"01", "1.", "+1", ".5", "1e", "1e999"}) {
    EXPECT_EQ(refusal(std::string("[0, ") + number + "]"),
              std::string("ds.json:1:5: expected a number that JSON allows, found '") + number + "'");
  }
  EXPECT_EQ(refusal(std::string(100, 'x')), "ds.json:1:1: expected a value, found 'xxxxxxxxxxxxxxxxxxxxxxxx...'");
}

TEST(Json, MistakesInsideStringsAreNamed) {
  EXPECT_EQ(refusal("[\"a\nb\"]"),
            "ds.json:1:4: expected '\"' at the end of the string, or \\n inside it, found a line break");
  EXPECT_EQ(refusal("[\"a\tb\"]"), "ds.json:1:4: expected \\u0009 inside a string, found the byte 0x09");
  EXPECT_EQ(refusal(R"(["C:\data"])"), "ds.json:1:6: expected an escape such as \\n or \\u00e9, found '\\d'");
  EXPECT_EQ(refusal(R"(["\u00g0"])"), "ds.json:1:7: expected an escape such as \\n or \\u00e9, found '\\u00g'");
  EXPECT_EQ(refusal(R"(["\ud800"])"), "ds.json:1:9: expected the second half of a surrogate pair, \\udc00 to \\udfff");
}

TEST(Json, RefusesInvalidUtf8) {
  EXPECT_EQ(refusal("[\"a\xff\"]"), "ds.json:1:4: expected UTF-8, found the byte 0xff");
  EXPECT_EQ(refusal("[\"\xc3(\"]"), "ds.json:1:3: expected UTF-8, found the byte 0xc3");
  EXPECT_EQ(refusal("{\"\xed\xa0\x80\": 1}"), "ds.json:1:4: expected UTF-8, found the byte 0xa0");  // a lone surrogate
  EXPECT_EQ(refusal("\xff"), "ds.json:1:1: expected a value, found '\\xff'");
}

TEST(Json, RefusesWhatFollowsANulByte) {
  EXPECT_EQ(refusal(std::string_view("{}\n\0{", 5)), "ds.json:2:1: expected text, found a NUL byte");
}

TEST(Json, AKeyThatStandsTwiceIsRefusedByNameAndLine) {
  EXPECT_EQ(refusal("{\n  \"lr\": 1,\n  \"lr\": 1\n}"), "ds.json:3:3: the key \"lr\" appears twice in one object");
  EXPECT_EQ(refusal(R"({"a": {"lr": 1}, "b": [{"lr": 1}, {"lr": 2}], "lr": 3})"), "accepted");
  EXPECT_EQ(refusal(R"([{"l\u0072": 1, "lr": 1}])"), "ds.json:1:17: the key \"lr\" appears twice in one object");
}

TEST(Json, DeepNestingIsRefusedWithoutExhaustingTheStack) {
  EXPECT_EQ(refusal(std::string(100'000, '[')), "ds.json:1:257: expected at most 256 levels of nesting, found more");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal(objects), "ds.json:1:1281: expected at most 256 levels of nesting, found more");
  EXPECT_EQ(refusal(std::string(256, '[') + std::string(256, ']')), "accepted");
}

TEST(Json, AnObjectOfAQuarterMillionKeysIsReadInLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 250'000; ++i) text += "\"token" + std::to_string(i) + "\": " + std::to_string(i) + ",";
  text += "\"last\": 0}";
  EXPECT_EQ(parse_json(text, "vocab").size(), 250'001u);  // with a search for each key: minutes
}

TEST(Json, EveryTruncationOfATextIsRefused) {
  const std::string text = R"({"a": [1.5e3, "x\u00e9\n", null], "b": {"c": true}})";
  ASSERT_EQ(refusal(text), "accepted");
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(refusal(text.substr(0, size)).substr(0, 8), "ds.json:") << size;
  }
}

TEST(Json, AFileIsCalledByItsPath) {
  const TestFolder folder;
  const std::filesystem::path path = folder / "file.json";
  write_file_atomically(path, "[1,\n");
  try {
    read_json_file(path);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), path.string() + ":2:1: expected a value, found the end of the text");
  }
  write_file_atomically(path, "[1]");
  EXPECT_EQ(read_json_file(path).dump(), "[1]");
  std::filesystem::remove(path);
  EXPECT_THROW(read_json_file(path), UsageError);
}

}  // namespace
}  // namespace tessera
