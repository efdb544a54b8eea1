// Reads a model's config.json field by field: types and ranges are checked, aliases must agree, and every refusal names
// the file and the field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace tessera {

class ConfigReader {
 public:
  // `config` must outlive the reader; `origin` is what messages call it, usually its path. Throws UsageError if it is
  // not an object.
  ConfigReader(const Json& config, std::string origin);

  // Messages use the first name; the others are aliases. A field that is absent or null takes the default; without a
  // default it is an error. Aliases with different values are refused.
  using Names = std::initializer_list<const char*>;
  std::int64_t integer(Names names, std::int64_t low, std::int64_t high, std::optional<std::int64_t> preset = {}) const;
  double real(Names names, double low, double high, std::optional<double> preset = {}) const;  // both ends allowed
  bool boolean(Names names, std::optional<bool> preset = {}) const;
  std::string text(Names names, std::optional<std::string> preset = {}) const;
  // A whole number, a list of them, or null (empty): "eos_token_id".
  std::vector<std::int64_t> integers(const char* name, std::int64_t low, std::int64_t high) const;

  const std::string& origin() const { return origin_; }
  [[noreturn]] void refuse(const std::string& field, const std::string& reason) const;

 private:
  struct Field {
    std::string name;
    const Json* value;  // null: absent
  };
  Field find(Names names, bool has_preset) const;
  std::int64_t whole_number(const std::string& name, const Json& value, std::int64_t low, std::int64_t high) const;

  const Json& config_;
  std::string origin_;
};

}  // namespace tessera
