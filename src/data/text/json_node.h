// A value of JSON text together with its path. Reading it as the wrong type throws UsageError naming the file, line,
// column and path: "x.json:12:7: data[3].paragraphs[1].qas[0].answers: expected an array, found a string".
//
// The path is spelt out only for errors: a node costs a few words. It points at the value, the source and its parent
// node; all of them must outlive it (nodes live in one expression or scope).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace tessera {

// The text a value came from: a whole file, or one line of it.
struct JsonSource {
  std::string_view text;
  const std::string& origin;         // what messages call it
  const char* name;                  // of the outermost value: "the file", "the row"
  std::size_t num_lines_before = 0;  // if the text is only a part
};

class JsonNode {
 public:
  JsonNode(const Json& value, const JsonSource& source) : value_(&value), source_(&source) {}

  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_string() const { return value_->is_string(); }
  bool has(const char* key) const { return value_->is_object() && value_->find(key) != value_->end(); }

  JsonNode at(const char* key) const;
  std::size_t size() const;  // of an array
  JsonNode at(std::size_t index) const { return JsonNode((*value_)[index], *this, nullptr, index); }

  std::string text() const;
  // A label we do not interpret: a number is read as its digits, null or a missing key as "".
  std::string label(const char* key) const;
  std::int64_t count() const;  // a whole number of at least 0

  [[noreturn]] void refuse(const std::string& expected) const;  // "expected ..., found ..."
  [[noreturn]] void refuse_with(const std::string& mistake) const;

 private:
  JsonNode(const Json& value, const JsonNode& parent, const char* key, std::size_t index)
      : value_(&value), source_(parent.source_), parent_(&parent), key_(key), index_(index) {}

  [[noreturn]] void refuse_missing(const char* key) const;

  const Json* value_;
  const JsonSource* source_;
  const JsonNode* parent_ = nullptr;
  const char* key_ = nullptr;  // in the parent; null: index_ is used
  std::size_t index_ = 0;
};

}  // namespace tessera
