#include "comm/meeting/store_table.h"

#include <algorithm>

#include "comm/meeting/packet.h"
#include "core/text.h"

namespace tessera {

std::optional<std::string> StoreTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

bool StoreTable::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return values_.count(key) != 0; });
}

std::int64_t StoreTable::add(const std::string& key, std::int64_t amount) {
  const auto found = values_.find(key);
  const std::optional<long long> before =
      found == values_.end() ? std::optional<long long>(0) : parse_integer(found->second);
  std::int64_t sum = 0;
  if (!before || __builtin_add_overflow(static_cast<std::int64_t>(*before), amount, &sum)) {
    throw RefusedRequest("an addition to a value that is not a number, or too large a sum");
  }
  values_[key] = std::to_string(sum);
  return sum;
}

std::string StoreTable::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (!expected.empty()) return expected;
    values_[key] = desired;
    return desired;
  }
  if (found->second == expected) found->second = desired;
  return found->second;
}

}  // namespace tessera
