// One object of a tokenizer file, and its place in the file, so that every message can name it: "dir/tokenizer.json:
// pre_tokenizer.pretokenizers[0]: expected ...".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace tessera::internal {

class Component {
 public:
  // `json` must outlive it. It may not be an object: the first access checks.
  Component(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const Json& json() const { return *json_; }
  const std::string& where() const { return where_; }
  bool is_null() const { return json_->is_null(); }

  // Refuses keys beyond these: an unknown key could change what the file means.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const;  // and it is not null
  Component child(std::string_view key) const;
  std::vector<Component> children(std::string_view key) const;  // of an array
  std::string type() const { return text("type"); }

  std::string text(std::string_view key) const;
  bool flag(std::string_view key) const;
  bool flag(std::string_view key, bool preset) const;
  std::int32_t id(std::string_view key) const;  // a token id: 0 to kMaxTokenId
  std::int64_t count(std::string_view key, std::int64_t preset) const;

  // Ends with "found ...", shortened if long.
  [[noreturn]] void refuse(const std::string& message) const;
  [[noreturn]] void refuse_value(std::string_view expected) const;

  std::string as_text() const;
  std::int32_t as_id() const;

 private:
  const Json* find(std::string_view key) const;

  const Json* json_;
  std::string where_;
};

// Tables are as long as the largest id: a bound keeps a broken file from exhausting the memory.
inline constexpr std::int32_t kMaxTokenId = (1 << 22) - 1;

}  // namespace tessera::internal
