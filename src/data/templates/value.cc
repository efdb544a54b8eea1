#include "data/templates/value.h"

#include "data/templates/object.h"

namespace tessera::internal::jinja {

std::optional<std::int64_t> Value::integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&form_)) return *value;
  if (const auto* value = std::get_if<bool>(&form_)) return *value ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* value = std::get_if<double>(&form_)) return *value;
  if (const auto value = integer()) return static_cast<double>(*value);
  return std::nullopt;
}

const Values* Value::items() const {
  if (const List* value = list()) return &value->items;
  if (const Tuple* value = tuple()) return &value->items;
  return nullptr;
}

Object* Value::object() const {
  const auto* value = std::get_if<Object*>(&form_);
  return value == nullptr ? nullptr : *value;
}

std::size_t Value::depth() const {
  if (const List* value = list()) return value->depth;
  if (const Tuple* value = tuple()) return value->depth;
  if (const Dict* value = dict()) return value->depth;
  return 0;
}

std::string_view Value::type_name() const {
  if (const Object* value = object()) return value->type_name();
  static constexpr std::string_view kNames[] = {"NoneType", "Undefined", "bool",  "int", "float",
                                                "str",      "list",      "tuple", "dict"};
  return kNames[form_.index()];
}

bool Value::is_same(const Value& other) const {
  if (form_.index() != other.form_.index()) return false;
  if (is_bool()) return is_true() == other.is_true();
  if (is_integer()) return integer() == other.integer();
  if (is_real()) return number() == other.number();
  if (const Undefined* value = std::get_if<Undefined>(&form_))
    return value->why == std::get<Undefined>(other.form_).why;
  // Python keeps equal short texts once, in most cases.
  if (const std::string* value = text()) return *value == *other.text();
  return list() == other.list() && tuple() == other.tuple() && dict() == other.dict() && object() == other.object();
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (const std::string* text = name.text(); text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

}  // namespace tessera::internal::jinja
