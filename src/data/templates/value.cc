#include "data/templates/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/templates/functions.h"
#include "data/templates/rendering.h"

namespace tessera::internal::jinja {
namespace {

template <typename T>
const T* pointer(const auto& form) {
  const auto* shared = std::get_if<std::shared_ptr<const T>>(&form);
  return shared == nullptr ? nullptr : shared->get();
}

}  // namespace

Value Value::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

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

bool Value::is_markup() const {
  const Text* const value = pointer<Text>(form_);
  return value != nullptr && value->is_markup;
}

const std::string* Value::text() const {
  const Text* const value = pointer<Text>(form_);
  return value == nullptr ? nullptr : &value->text;
}

const List* Value::list() const {
  return pointer<List>(form_);
}

const Dict* Value::dict() const {
  return pointer<Dict>(form_);
}

Object* Value::object() const {
  const auto* value = std::get_if<Object*>(&form_);
  return value == nullptr ? nullptr : *value;
}

std::size_t Value::depth() const {
  if (const List* value = list()) return value->depth;
  if (const Dict* value = dict()) return value->depth;
  return 0;
}

std::string_view Value::type_name() const {
  if (const Object* value = object()) return value->type_name();
  if (const List* value = list()) return value->is_tuple ? "tuple" : "list";
  static constexpr std::string_view kNames[] = {"NoneType", "Undefined", "bool", "int", "float", "str", "", "dict"};
  return kNames[form_.index()];
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [known, value] : entries) {
    if (const std::string* text = known.text(); text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.text() != nullptr) return find(*key.text());
  for (const auto& [known, value] : entries) {
    if (key.integer() && known.integer() == key.integer()) return &value;
  }
  return nullptr;
}

Value Object::call(Rendering& rendering, const Arguments&) {
  rendering.refuse(fmt::format("'{}' object is not callable", type_name()));
}

std::optional<Value> Namespace::attribute(Rendering& rendering, std::string_view name) {
  rendering.spend(members_.size() / 8);
  for (const auto& [known, value] : members_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(Rendering& rendering, std::string_view name, Value value) {
  if (name.starts_with('_')) {
    rendering.refuse(fmt::format("names of a namespace must not begin with _, found '{}'", name));
  }
  rendering.spend(1 + members_.size() / 8);
  for (auto& [known, old] : members_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  members_.emplace_back(name, std::move(value));
}

Values Sequence::take(std::size_t most) {
  const auto end = items_.begin() + static_cast<std::ptrdiff_t>(std::min(most, items_.size()));
  Values taken(items_.begin(), end);
  if (is_generator_) items_.erase(items_.begin(), end);
  return taken;
}

Value BoundFunction::call(Rendering& rendering, const Arguments& arguments) {
  return call_function(rendering, function_, self_, arguments);
}

}  // namespace tessera::internal::jinja
