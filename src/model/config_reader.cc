#include "model/config_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"

namespace tessera {

ConfigReader::ConfigReader(const Json& config, std::string origin) : config_(config), origin_(std::move(origin)) {
  if (!config.is_object())
    throw UsageError(fmt::format("{}: expected an object, found {}", origin_, config.type_name()));
}

void ConfigReader::refuse(const std::string& field, const std::string& reason) const {
  throw UsageError(fmt::format("{}: \"{}\" {}", origin_, field, reason));
}

ConfigReader::Field ConfigReader::find(Names names, bool has_preset) const {
  Field found{*names.begin(), nullptr};
  for (const char* name : names) {
    const auto entry = config_.find(name);
    if (entry == config_.end() || entry->is_null()) continue;
    if (found.value != nullptr && *found.value != *entry) {
      refuse(found.name, fmt::format("is {} and its other name \"{}\" is {}: remove one",
                                     printable(found.value->dump()), name, printable(entry->dump())));
    }
    if (found.value == nullptr) found = {name, &*entry};
  }
  if (found.value == nullptr && !has_preset) refuse(found.name, "is missing");
  return found;
}

std::int64_t ConfigReader::whole_number(const std::string& name, const Json& value, std::int64_t low,
                                        std::int64_t high) const {
  const auto wrong = [&] {
    refuse(name, fmt::format("is {}: expected a whole number from {} to {}", printable(value.dump()), low, high));
  };
  if (!value.is_number_integer()) wrong();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) wrong();
  const auto number = value.get<std::int64_t>();
  if (number < low || number > high) wrong();
  return number;
}

std::int64_t ConfigReader::integer(Names names, std::int64_t low, std::int64_t high,
                                   std::optional<std::int64_t> preset) const {
  const Field field = find(names, preset.has_value());
  return field.value == nullptr ? *preset : whole_number(field.name, *field.value, low, high);
}

double ConfigReader::real(Names names, double low, double high, std::optional<double> preset) const {
  const Field field = find(names, preset.has_value());
  if (field.value == nullptr) return *preset;
  const double number = field.value->is_number() ? field.value->get<double>() : std::nan("");
  if (!(number >= low && number <= high)) {
    refuse(field.name,
           fmt::format("is {}: expected a number from {} to {}", printable(field.value->dump()), low, high));
  }
  return number;
}

bool ConfigReader::boolean(Names names, std::optional<bool> preset) const {
  const Field field = find(names, preset.has_value());
  if (field.value == nullptr) return *preset;
  if (!field.value->is_boolean()) {
    refuse(field.name, fmt::format("is {}: expected true or false", printable(field.value->dump())));
  }
  return field.value->get<bool>();
}

std::string ConfigReader::text(Names names, std::optional<std::string> preset) const {
  const Field field = find(names, preset.has_value());
  if (field.value == nullptr) return *preset;
  if (!field.value->is_string())
    refuse(field.name, fmt::format("is {}: expected a string", printable(field.value->dump())));
  return field.value->get<std::string>();
}

std::vector<std::int64_t> ConfigReader::integers(const char* name, std::int64_t low, std::int64_t high) const {
  const Field field = find({name}, true);
  if (field.value == nullptr) return {};
  if (!field.value->is_array()) return {whole_number(name, *field.value, low, high)};
  std::vector<std::int64_t> numbers;
  for (const Json& item : *field.value) numbers.push_back(whole_number(name, item, low, high));
  return numbers;
}

}  // namespace tessera
