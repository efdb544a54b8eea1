#include "data/tokenizer/component.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera::internal {

void Component::refuse(const std::string& message) const {
  throw UsageError(where_ + (where_.ends_with(':') ? " " : ": ") + message);
}

void Component::refuse_value(std::string_view expected) const {
  refuse(fmt::format("expected {}, found {}", expected, printable(json_->dump(), 80)));
}

const Json* Component::find(std::string_view key) const {
  if (!json_->is_object()) refuse_value("an object");
  const auto found = json_->find(key);
  return found == json_->end() ? nullptr : &*found;
}

void Component::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!json_->is_object()) refuse_value("an object");
  for (const auto& item : json_->items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end()) {
      refuse(fmt::format("unknown key \"{}\"; known keys: {}", printable(item.key(), 80),
                         fmt::join(keys.begin(), keys.end(), ", ")));
    }
  }
}

bool Component::has(std::string_view key) const {
  const Json* value = find(key);
  return value != nullptr && !value->is_null();
}

Component Component::child(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) refuse(fmt::format("\"{}\" is missing", key));
  return {*value, fmt::format("{}{}{}", where_, where_.ends_with(':') ? " " : ".", key)};
}

std::vector<Component> Component::children(std::string_view key) const {
  const Component list = child(key);
  if (!list.json().is_array()) list.refuse_value("an array");
  std::vector<Component> all;
  for (const Json& item : list.json()) all.emplace_back(item, fmt::format("{}[{}]", list.where(), all.size()));
  return all;
}

std::string Component::as_text() const {
  if (!json_->is_string()) refuse_value("a string");
  return json_->get<std::string>();
}

std::int32_t Component::as_id() const {
  if (!json_->is_number_integer() || *json_ < 0 || *json_ > kMaxTokenId) {
    refuse_value(fmt::format("a token id, 0 to {}", kMaxTokenId));
  }
  return json_->get<std::int32_t>();
}

std::string Component::text(std::string_view key) const {
  return child(key).as_text();
}

bool Component::flag(std::string_view key) const {
  const Component value = child(key);
  if (!value.json().is_boolean()) value.refuse_value("true or false");
  return value.json().get<bool>();
}

bool Component::flag(std::string_view key, bool preset) const {
  return has(key) ? flag(key) : preset;
}

std::int32_t Component::id(std::string_view key) const {
  return child(key).as_id();
}

std::int64_t Component::count(std::string_view key, std::int64_t preset) const {
  if (!has(key)) return preset;
  const Component value = child(key);
  constexpr std::int64_t kMost = 1LL << 40;
  if (!value.json().is_number_integer() || value.json() < 0 || value.json() > kMost) {
    value.refuse_value("a whole number, 0 or more");
  }
  return value.json().get<std::int64_t>();
}

}  // namespace tessera::internal
