#include "core/log_record.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/error.h"

namespace tessera {

namespace {

LogValue log_value_of(const Json& value, const std::string& origin) {
  if (value.is_null()) return std::monostate{};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) throw UsageError(origin + ": expected a plain value, found " + value.dump());
  const std::string text = value.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return text;
}

}  // namespace

// fmt's digits and exponents are Python's; only the point of a whole number is missing.
std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  const std::string text = fmt::format("{}", value);
  return std::isfinite(value) && text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string python_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string shown(1, quote);
  for (const char letter : text) {
    const unsigned char byte = static_cast<unsigned char>(letter);
    if (letter == quote || letter == '\\') {
      shown += '\\';
      shown += letter;
    } else if (letter == '\n') {
      shown += "\\n";
    } else if (letter == '\r') {
      shown += "\\r";
    } else if (letter == '\t') {
      shown += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += letter;
    }
  }
  return shown + quote;
}

std::string python_repr(const LogValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool truth) const { return truth ? "True" : "False"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return python_repr(number); }
    std::string operator()(const std::string& text) const { return python_repr(std::string_view(text)); }
  };
  return std::visit(Visitor{}, value);
}

Json json_of(const LogValue& value) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool truth) const { return truth; }
    Json operator()(std::int64_t number) const { return number; }
    Json operator()(double number) const { return std::isfinite(number) ? Json(number) : Json(python_repr(number)); }
    Json operator()(const std::string& text) const { return text; }
  };
  return std::visit(Visitor{}, value);
}

Json json_of(const LogRecord& record) {
  Json object = Json::object();
  for (const auto& [key, value] : record.entries()) object[key] = json_of(value);
  return object;
}

LogRecord log_record_of(const Json& object, const std::string& origin) {
  if (!object.is_object()) throw UsageError(origin + ": expected an object of metrics, found " + object.dump());
  LogRecord record;
  for (const auto& [key, value] : object.items()) record.set(key, log_value_of(value, origin));
  return record;
}

double python_round(double value, int places) {
  if (!std::isfinite(value)) return value;
  // printf rounds the exact binary value, ties to even, as Python does; reading it back rounds correctly too.
  return std::strtod(fmt::format("{:.{}f}", value, places).c_str(), nullptr);
}

}  // namespace tessera
