// The numbers of one log line, in the order in which they are printed; and values as Python prints them, since scripts
// parse our lines as Python's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/json.h"

namespace tessera {

// monostate is Python's None.
using LogValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

class LogRecord {
 public:
  using Entry = std::pair<std::string, LogValue>;

  LogRecord() = default;
  LogRecord(std::initializer_list<Entry> entries) : entries_(entries) {}

  // Replaces the value of a key that is there, and leaves it in its place.
  void set(const std::string& key, LogValue value) {
    const auto found = std::ranges::find(entries_, key, &Entry::first);
    if (found != entries_.end()) {
      found->second = std::move(value);
    } else {
      entries_.emplace_back(key, std::move(value));
    }
  }

  const LogValue* find(const std::string& key) const {
    const auto found = std::ranges::find(entries_, key, &Entry::first);
    return found == entries_.end() ? nullptr : &found->second;
  }

  // A whole number or a real one; nothing where the key is absent or its value is neither.
  std::optional<double> number(const std::string& key) const {
    const LogValue* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const double* real = std::get_if<double>(value)) return *real;
    if (const std::int64_t* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
    return std::nullopt;
  }

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool operator==(const LogRecord&) const = default;

 private:
  std::vector<Entry> entries_;
};

// The shortest digits that give the same double back: 1e-05, 4.895, 1e+16, 100.0, nan, -inf.
std::string python_repr(double value);
std::string python_repr(std::string_view text);  // quoted as Python quotes it: 'text'
std::string python_repr(const LogValue& value);

// In JSON files, which have no nan and no infinity: these are the words "nan", "inf" and "-inf".
Json json_of(const LogValue& value);
Json json_of(const LogRecord& record);
// Throws UsageError "<origin>: expected ..." where it is no object of plain values.
LogRecord log_record_of(const Json& object, const std::string& origin);

// Python's round(value, places): of the exact binary value, ties to the even digit.
double python_round(double value, int places);

}  // namespace tessera
