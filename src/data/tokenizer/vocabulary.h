// Tokens by id and ids by token: one of each, no id twice.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::internal {

struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using IdOfToken = std::unordered_map<std::string, std::int32_t, StringHash, std::equal_to<>>;

class Vocabulary {
 public:
  // Returns the token that already has this id, if any; then nothing is added.
  std::optional<std::string> add(std::string token, std::int32_t id) {
    if (static_cast<std::size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<std::size_t>(id) + 1);
    if (tokens_[static_cast<std::size_t>(id)]) return *tokens_[static_cast<std::size_t>(id)];
    tokens_[static_cast<std::size_t>(id)] = token;
    ids_.emplace(std::move(token), id);
    return std::nullopt;
  }

  std::optional<std::int32_t> id_of(std::string_view token) const {
    const auto found = ids_.find(token);
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  // Null if no token has the id.
  const std::string* token_of(std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size()) return nullptr;
    const auto& token = tokens_[static_cast<std::size_t>(id)];
    return token ? &*token : nullptr;
  }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(ids_.size()); }
  std::int32_t end_id() const { return static_cast<std::int32_t>(tokens_.size()); }  // the largest + 1

 private:
  IdOfToken ids_;
  std::vector<std::optional<std::string>> tokens_;
};

}  // namespace tessera::internal
