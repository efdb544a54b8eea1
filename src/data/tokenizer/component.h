// One object of a tokenizer file, and where it stands, so that every message can say so:
// "dir/tokenizer.json: pre_tokenizer.pretokenizers[0]: expected ...".
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
  // `json` must outlive it. Not yet known to be an object: the first question finds out.
  Component(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const Json& json() const { return *json_; }
  const std::string& where() const { return where_; }
  bool is_null() const { return json_->is_null(); }

  // Refuses keys beyond these: one that we do not know could change what the file means.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const;  // and it is not null
  Component child(std::string_view key) const;
  std::vector<Component> children(std::string_view key) const;  // of an array
  std::string type() const { return text("type"); }

  std::string text(std::string_view key) const;
  bool flag(std::string_view key) const;
  bool flag(std::string_view key, bool preset) const;
  std::int32_t id(std::string_view key) const;  // a token's: 0 to kMaxTokenId
  std::int64_t count(std::string_view key, std::int64_t preset) const;

  // "found ..." at the end, cut where it is long.
  [[noreturn]] void refuse(const std::string& message) const;
  [[noreturn]] void refuse_value(std::string_view expected) const;

  std::string as_text() const;
  std::int32_t as_id() const;

 private:
  const Json* find(std::string_view key) const;

  const Json* json_;
  std::string where_;
};

// Tables are as long as the largest id: a bound keeps a broken file from asking for all the memory there is.
inline constexpr std::int32_t kMaxTokenId = (1 << 22) - 1;

}  // namespace tessera::internal
