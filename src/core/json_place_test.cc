#include "core/json_place.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(JsonPlace, FindsValuesByTheirPath) {
  const std::string text = R"( {"a": [1, {"b\u0063": "x]y\"", "d": []}, true], "e": {"f": -1.5e3}} )";
  const auto at = [&](const JsonPath& path) { return text.substr(offset_of(text, path), 4); };
  EXPECT_EQ(at({}), "{\"a\"");
  EXPECT_EQ(at({"a"}), "[1, ");
  EXPECT_EQ(at({"a", std::size_t{1}}), "{\"b\\");
  EXPECT_EQ(at({"a", std::size_t{1}, "bc"}), "\"x]y");
  EXPECT_EQ(at({"a", std::size_t{1}, "d"}), "[]},");
  EXPECT_EQ(at({"a", std::size_t{2}}), "true");
  EXPECT_EQ(at({"e", "f"}), "-1.5");
  EXPECT_EQ(at({"e", "missing"}), "{\"f\"");               // where it would be
  EXPECT_EQ(at({"a", std::size_t{1}, "d", "g"}), "[]},");  // not an object: the innermost value that exists
  EXPECT_EQ(path_text({"a", std::size_t{1}, "d"}), "a[1].d");
}

TEST(JsonPlace, FindsTheNamesBeforeValues) {
  const std::string text = R"({"a": [1, {"b": 2}], "long name" : 3})";
  const auto at = [&](const JsonPath& path) { return text.substr(key_offset_of(text, path), 4); };
  EXPECT_EQ(at({"a"}), "\"a\":");
  EXPECT_EQ(at({"a", std::size_t{0}}), "1, {");  // no name before it: the value itself
  EXPECT_EQ(at({"a", std::size_t{1}, "b"}), "\"b\":");
  EXPECT_EQ(at({"long name"}), "\"lon");
  EXPECT_EQ(at({}), "{\"a\"");
}

}  // namespace
}  // namespace tessera
