// Parses JSON and reports mistakes by line and column. The value type is nlohmann's; keys keep the order of the file.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

using Json = nlohmann::ordered_json;

enum class JsonComments { kRefused, kAllowed };  // allowed: // to the end of the line, and /* */

// `origin` is what messages call the text, usually its path: "ds.json:3:14: expected ',' or '}', found \"lr\"".
// Also refused: a key that appears twice in one object (by name), more than 256 levels of nesting, text that is not
// UTF-8. Throws UsageError. Lookup by key is linear in the object's size (nlohmann's ordered_json): copy big ones into
// a map.
Json parse_json(std::string_view text, const std::string& origin, JsonComments comments = JsonComments::kRefused);
Json read_json_file(const std::filesystem::path& path);

namespace internal {

struct TextPosition {
  std::size_t line = 1, column = 1;  // from 1; columns count characters, not bytes
};

// Where a token begins, counted from 0 without comments, commas and colons: each of the others is one event of a
// parser. The text must be JSON up to there.
TextPosition token_position(std::string_view text, std::size_t number);

}  // namespace internal

// For whatever may hold the bytes of a user's path or text: those that are not UTF-8 become U+FFFD, where dump()
// throws. `indent`: as in dump(); -1: one line.
std::string json_text(const Json& json, int indent = -1);

// A struct that lists its fields once becomes an object, and back:
//   static void visit_fields(auto& self, const auto& visit) { visit("rank", self.rank); ... }
template <typename T>
concept HasFields = requires(T& value) {
  T::visit_fields(value, [](const char*, const auto&) {});
};

template <HasFields T>
void to_json(Json& json, const T& value) {
  T::visit_fields(value, [&](const char* name, const auto& field) { json[name] = field; });
}
template <HasFields T>
void from_json(const Json& json, T& value) {
  T::visit_fields(value, [&](const char* name, auto&& field) { json.at(name).get_to(field); });
}

}  // namespace tessera

// Nothing is null.
template <typename T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(auto& json, const std::optional<T>& value) {
    json = nullptr;
    if (value) json = *value;
  }
  static void from_json(const auto& json, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) json.get_to(value.emplace());
  }
};
