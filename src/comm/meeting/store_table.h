// The keys and values of a store, with the meaning that c10d gives to each operation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

class StoreTable {
 public:
  void set(const std::string& key, std::string value) { values_[key] = std::move(value); }
  std::optional<std::string> find(const std::string& key) const;
  bool has_all(const std::vector<std::string>& keys) const;
  // The value is a number as text; one that is absent counts as 0. Throws ProtocolError if it is something else.
  std::int64_t add(const std::string& key, std::int64_t amount);
  // Sets `desired` if the value is `expected`, or if there is none and `expected` is empty. Returns the value then; if
  // there is none, `expected`.
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired);
  void append(const std::string& key, const std::string& more) { values_[key] += more; }
  bool erase(const std::string& key) { return values_.erase(key) != 0; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace tessera
