#include "core/json_reader.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

template <typename Read>
std::string refusal(const std::string& text, const Read& read) {
  try {
    const JsonText json(text, "x.json", JsonComments::kAllowed);
    read(json.root());
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(JsonReader, FindsValuesAndTheirNamesInTheText) {
  const JsonText json(
      "// a comment: [{\n"
      R"( {"a": [1, /* 2 */ {"b\u0063": "x]y\"", "d": []}, true], "e": {"f": -1.5e3}} )",
      "x.json", JsonComments::kAllowed);
  const JsonReader root = json.root();
  EXPECT_EQ(root.place(), "x.json:2:2");
  EXPECT_EQ(root.path(), "");
  EXPECT_EQ(root.at("a").place(), "x.json:2:8");
  EXPECT_EQ(root.at("a").place(JsonPart::kKey), "x.json:2:3");
  const JsonReader second = root.at("a").at(std::size_t{1});
  EXPECT_EQ(second.place(), "x.json:2:20");
  EXPECT_EQ(second.place(JsonPart::kKey), second.place()) << "no name before it";
  EXPECT_EQ(second.at("bc").place(), "x.json:2:32");
  EXPECT_EQ(second.at("d").path(), "a[1].d");
  EXPECT_EQ(second.at("d").place(JsonPart::kKey), "x.json:2:41");
  EXPECT_EQ(root.at("a").at(std::size_t{2}).place(), "x.json:2:51");
  EXPECT_EQ(root.at("e").at("f").place(), "x.json:2:69");
}

TEST(JsonReader, CommentsMayFollowAValueAtOnce) {
  const auto nothing = [](const JsonReader&) {};
  EXPECT_EQ(refusal("{\"a\": 1// first\n, \"b\": 2, \"b\": 3}", nothing),
            "x.json:2:11: the key \"b\" appears twice in one object");
  EXPECT_EQ(refusal(R"({"a": 1/* x y */, "a": 2})", nothing), "x.json:1:19: the key \"a\" appears twice in one object");
  EXPECT_EQ(refusal("{}\n /* open", nothing),
            "x.json:2:2: expected */ at the end of this comment, found the end of the text");
}

TEST(JsonReader, ReadsMembersAndTheirDefaults) {
  const JsonText json(R"({"name": "n", "on": true, "size": 3, "n_size": 3, "rate": 0.5, "none": null, "ids": [1, 2]})",
                      "x");
  const JsonReader root = json.root();
  EXPECT_EQ(root.text("name"), "n");
  EXPECT_EQ(root.text("none", "default"), "default");
  EXPECT_EQ(root.text({"title", "name"}), "n");
  EXPECT_TRUE(root.boolean("on"));
  EXPECT_EQ(root.integer({"size", "n_size"}, 1, 5), 3);
  EXPECT_EQ(root.integer("other", 1, 5, 9), 9);
  EXPECT_EQ(root.real("rate", 0, 1), 0.5);
  EXPECT_EQ(root.integers("ids", 0, 5), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(root.integers("size", 0, 5), std::vector<std::int64_t>{3});
  EXPECT_EQ(root.label("size"), "3");
  EXPECT_FALSE(root.has("none"));
}

TEST(JsonReader, RefusalsSayWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(refusal("[1]", [](const JsonReader& root) { root.at("a"); }),
            "x.json:1:1: the file: expected an object, found an array");
  EXPECT_EQ(refusal("{}", [](const JsonReader& root) { root.text("name"); }),
            "x.json:1:1: the file: \"name\" is missing");
  EXPECT_EQ(refusal(R"({"nane": 1})", [](const JsonReader& root) { root.text("name"); }),
            "x.json:1:1: the file: \"name\" is missing; is \"nane\" a spelling mistake?");
  EXPECT_EQ(refusal(R"({"a": 1, "b": "2"})", [](const JsonReader& root) { root.integer("b", 0, 5); }),
            "x.json:1:15: b: expected a whole number from 0 to 5, found \"2\"");
  EXPECT_EQ(refusal(R"({"a": 1, "b": 2})",
                    [](const JsonReader& root) {
                      root.integer({"a", "b"}, 0, 5);
                    }),
            "x.json:1:15: b: expected 1 as a, its other name, says, found 2: remove one");
  EXPECT_EQ(refusal(R"({"a": 18446744073709551615})", [](const JsonReader& root) { root.at("a").as_integer(); }),
            "x.json:1:7: a: expected a whole number, found 18446744073709551615");
  EXPECT_EQ(refusal("{\n\"sise\": 1}",
                    [](const JsonReader& root) {
                      root.allow_only({"size", "name"});
                    }),
            "x.json:2:1: sise: unknown key; did you mean \"size\"?");
}

TEST(JsonReader, ValuesWithoutTextHaveNoLineAndColumn) {
  const Json value = {{"a", {{"b", 1}}}};
  const JsonSource source{&value, "config.json"};
  try {
    JsonReader(source).at("a").text("b");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "config.json: a.b: expected a string, found 1");
  }
}

}  // namespace
}  // namespace tessera
