#include "core/log_json.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/log_record.h"

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

}  // namespace tessera
