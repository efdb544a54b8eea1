#include "data/text/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/json_mistake.h"
#include "core/json_place.h"
#include "core/text.h"

namespace tessera {

namespace {

std::string kind_of(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number()) return "the number " + value.dump();
  if (value.is_string()) return "a string";
  return value.is_array() ? "an array" : "an object";
}

}  // namespace

JsonNode JsonNode::at(const char* key) const {
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) refuse_missing(key);
  return JsonNode(*found, *this, key, 0);
}

std::size_t JsonNode::size() const {
  if (!value_->is_array()) refuse("an array");
  return value_->size();
}

std::string JsonNode::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

std::string JsonNode::label(const char* key) const {
  if (!has(key)) return {};
  const JsonNode node = at(key);
  if (node.value_->is_null()) return {};
  return node.value_->is_number() ? node.value_->dump() : node.text();
}

std::int64_t JsonNode::count() const {
  constexpr double kMost = 1e15;  // far beyond any text, exact as a double
  if (!value_->is_number_integer() || value_->get<double>() < 0 || value_->get<double>() > kMost) {
    refuse("a whole number of at least 0");
  }
  return value_->get<std::int64_t>();
}

void JsonNode::refuse(const std::string& expected) const {
  refuse_with(fmt::format("expected {}, found {}", expected, kind_of(*value_)));
}

void JsonNode::refuse_with(const std::string& mistake) const {
  JsonPath path;
  for (const JsonNode* node = this; node->parent_ != nullptr; node = node->parent_) {
    if (node->key_ != nullptr) {
      path.emplace_back(std::string(node->key_));
    } else {
      path.emplace_back(node->index_);
    }
  }
  std::reverse(path.begin(), path.end());
  const internal::TextPosition at = internal::position_of(source_->text, offset_of(source_->text, path));
  throw UsageError(fmt::format("{}:{}:{}: {}: {}", source_->origin, at.line + source_->num_lines_before, at.column,
                               path.empty() ? source_->name : path_text(path), mistake));
}

void JsonNode::refuse_missing(const char* key) const {
  std::vector<std::string> keys;
  constexpr std::size_t kMaxShown = 8;
  for (const auto& [name, member] : value_->items()) {
    if (keys.size() < kMaxShown) keys.push_back(printable(name, 40));
  }
  if (value_->size() > kMaxShown) keys.push_back("...");
  refuse_with(
      fmt::format("expected the key \"{}\", found {}", key, keys.empty() ? "no key" : "only " + join(keys, ", ")));
}

}  // namespace tessera
