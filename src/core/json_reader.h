// Reads JSON value by value: types and ranges are checked, and every refusal says where the value is and what was
// expected there: "ds.json:12:7: optimizer.params.lr: expected a number, found true".
//
//   const JsonText text(read_file(path), path.string());   // parsed; keeps the text for messages
//   const JsonReader root = text.root();
//   root.allow_only({"name", "sizes", "about"});           // other keys: "did you mean"
//   const std::string name = root.text("name");            // required
//   const std::string about = root.text("about", "");      // absent or null: the default
//   for (const JsonReader& size : root.at("sizes").items()) total += size.as_integer(1, kMost);
//
// A reader is two pointers: copy it freely. What it reads and its source must outlive it, and must not change. Where a
// value is gets looked up only for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"

namespace tessera {

// Where a value comes from: a file, one line of it, or a value without text, whose messages have no line and column.
struct JsonSource {
  const Json* root;
  std::string origin;                // what messages call it, usually the path
  std::string_view text = {};        // that parse_json() made the root from
  const char* name = "the file";     // what messages call the root
  std::size_t num_lines_before = 0;  // where the text is a part of a file
};

// One name of a member, or several that mean the same: messages use the first one.
class JsonNames {
 public:
  JsonNames(const char* name) : first_(name) {}
  JsonNames(std::initializer_list<const char*> names)
      : first_(*names.begin()), others_(names.begin() + 1, names.size() - 1) {}

  const char* first() const { return first_; }
  std::span<const char* const> others() const { return others_; }

 private:
  const char* first_;
  std::span<const char* const> others_;
};

enum class JsonPart { kValue, kKey };  // kKey: the name before a value

class JsonReader {
 public:
  static constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  explicit JsonReader(const JsonSource& source) : JsonReader(*source.root, source) {}

  const Json& json() const { return *value_; }
  const JsonSource& source() const { return *source_; }
  bool is_null() const { return value_->is_null(); }
  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_string() const { return value_->is_string(); }

  // This value.
  std::string as_text() const;
  bool as_bool() const;
  std::int64_t as_integer(std::int64_t low = kLowest, std::int64_t high = kHighest) const;  // both ends are allowed
  double as_real(double low = -kInfinity, double high = kInfinity) const;
  std::vector<std::string> as_texts() const;

  // The elements of an array.
  std::size_t size() const;
  JsonReader at(std::size_t index) const { return {(*value_)[index], *source_}; }
  std::vector<JsonReader> items() const;

  // The members of an object. Each is looked up by a linear search (core/json.h).
  bool has(std::string_view key) const { return find(key).has_value(); }
  std::optional<JsonReader> find(std::string_view key) const;  // nothing: absent or null
  JsonReader at(std::string_view key) const;                   // absent: refused
  JsonReader at(const char* key) const { return at(std::string_view(key)); }
  std::vector<std::pair<std::string, JsonReader>> members() const;
  // Refuses other keys, by the nearest of these: an unknown key could change what the file means.
  void allow_only(const std::vector<std::string>& keys) const;

  // A member, or its default where it is absent or null; without a default it must be there. Names that mean the same
  // must have the same value.
  std::string text(JsonNames names, std::optional<std::string> preset = {}) const;
  bool boolean(JsonNames names, std::optional<bool> preset = {}) const;
  std::int64_t integer(JsonNames names, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> preset = {}) const;
  double real(JsonNames names, double low, double high, std::optional<double> preset = {}) const;
  // A whole number, a list of them, or none: "eos_token_id".
  std::vector<std::int64_t> integers(const char* name, std::int64_t low, std::int64_t high) const;
  // A label that we do not interpret: a number is read as its digits, null or a missing key as "".
  std::string label(const char* key) const;

  std::string path() const;                                   // "data[3].paragraphs"; "" for the root
  std::string place(JsonPart part = JsonPart::kValue) const;  // "ds.json:12:7"

  [[noreturn]] void refuse_value(const std::string& expected) const;  // "<place>: <path>: expected ..., found ..."
  [[noreturn]] void refuse(const std::string& mistake) const;         // "<place>: <path>: <mistake>"
  [[noreturn]] void refuse_key(const std::string& mistake) const;     // the same, at the place of the key
  // The same for a member, which need not be there.
  [[noreturn]] void refuse_member(std::string_view key, const std::string& mistake) const;

 private:
  JsonReader(const Json& value, const JsonSource& source) : value_(&value), source_(&source) {}

  std::optional<JsonReader> member(JsonNames names, bool has_preset) const;

  const Json* value_;
  const JsonSource* source_;
};

// A text with its value.
class JsonText {
 public:
  JsonText(std::string text, std::string origin, JsonComments comments = JsonComments::kRefused)
      : text_(std::move(text)),
        value_(parse_json(text_, origin, comments)),
        source_{&value_, std::move(origin), text_} {}
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  JsonReader root() const { return JsonReader(source_); }

 private:
  std::string text_;
  Json value_;
  JsonSource source_;
};

// What a message calls a value: true, 3, "a short text", an array, an object.
std::string shown(const Json& value);

}  // namespace tessera
