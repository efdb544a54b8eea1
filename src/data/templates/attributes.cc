#include "data/templates/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/text.h"
#include "data/templates/compare.h"
#include "data/templates/sequence.h"
#include "data/templates/text_parts.h"

namespace tessera::internal::jinja {
namespace {

template <std::size_t size>
bool is_among(const std::array<std::string_view, size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Of lists and dicts, which never change here.
bool changes_value(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear", "pop",    "reverse",
                                                               "insert", "sort",  "extend", "remove"};
  static constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault", "update"};
  if (value.list() != nullptr) return is_among(kOfLists, name);
  return value.dict() != nullptr && is_among(kOfDicts, name);
}

// Methods that Python has and we do not.
bool is_missing_method(const Value& value, std::string_view name) {
  static constexpr std::array<std::string_view, 5> kOfTexts = {"casefold", "encode", "expandtabs", "maketrans",
                                                               "translate"};
  return (value.text() != nullptr && is_among(kOfTexts, name)) || (value.dict() != nullptr && name == "fromkeys");
}

// Undefined, as if the attribute were not there; says why when it is called.
Value unsafe(const Value& value, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe", printable(name, 60), value.type_name()));
}

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", value.type_name(), printable(name, 60)));
}

// What Python's getattr finds, if the sandbox lets a template have it.
std::optional<Value> find_attribute(Rendering& rendering, const Value& value, std::string_view name) {
  if (const Method::Body method = find_method(value, name)) return rendering.make<Method>(value, name, method);
  if (changes_value(value, name)) return unsafe(value, name);
  if (is_missing_method(value, name)) {
    rendering.refuse(fmt::format("the method '{}' of '{}' is not supported", name, value.type_name()));
  }
  if (const Tuple* tuple = value.tuple(); tuple != nullptr && tuple->is_group) {
    if (name == "grouper") return tuple->items[0];
    if (name == "list") return tuple->items[1];
  }
  if (Object* object = value.object(); object != nullptr && !name.starts_with('_')) {
    return object->attribute(rendering, name);
  }
  return std::nullopt;
}

// A text, or the texts of a list or a tuple.
Value as_markup(Rendering& rendering, const Value& value) {
  if (value.text() != nullptr) return Value::markup(*value.text());
  if (value.items() == nullptr) return value;
  Values items = *value.items();
  for (Value& item : items) item = as_markup(rendering, item);
  return value.list() != nullptr ? rendering.list(std::move(items)) : rendering.tuple(std::move(items));
}

std::optional<Value> find_item(Rendering& rendering, const Value& value, const Value& key) {
  if (const Dict* dict = value.dict()) {
    if (key.list() != nullptr || key.dict() != nullptr) return std::nullopt;  // nothing has such a key
    const Value* const entry = find_entry(rendering, *dict, key);
    return entry == nullptr ? std::nullopt : std::optional(*entry);
  }
  return key.integer() ? find_item_at(rendering, value, *key.integer()) : std::nullopt;
}

}  // namespace

Method::Body find_method(const Value& value, std::string_view name) {
  if (value.text() != nullptr) {
    if (const Method::Body method = find_text_method(name)) return method;
    const Method::Body method = find_search_method(name);
    return method != nullptr ? method : find_text_check(name);
  }
  if (value.dict() != nullptr) return find_dict_method(name);
  if (value.items() == nullptr) return nullptr;
  return value.tuple() != nullptr && name == "copy" ? nullptr : find_list_method(name);
}

Value attribute_of(Rendering& rendering, const Value& value, std::string_view name) {
  rendering.spend(1);
  rendering.check_defined(value);
  if (auto found = find_attribute(rendering, value, name)) return *std::move(found);
  if (const Dict* dict = value.dict()) {
    rendering.spend(dict->entries.size() / 8);
    if (const Value* entry = dict->find(name)) return *entry;
  }
  return missing(value, name);
}

Value item_of(Rendering& rendering, const Value& value, const Value& key) {
  rendering.spend(1);
  rendering.check_defined(value);
  if (auto found = find_item(rendering, value, key)) return *std::move(found);
  if (const std::string* name = key.text()) {
    if (auto found = find_attribute(rendering, value, *name)) return *std::move(found);
    return missing(value, *name);
  }
  return Value::undefined(fmt::format("'{} object' has no such item", value.type_name()));
}

Value pure_attribute_of(Rendering& rendering, const Value& value, std::string_view name) {
  rendering.check_defined(value);
  auto found = find_attribute(rendering, value, name);
  return found ? *std::move(found) : missing(value, name);
}

Value call_method(Rendering& rendering, Method::Body method, std::string_view name, const Value& self,
                  Arguments arguments) {
  if (!self.is_markup()) return method(rendering, self, arguments);
  if (name == "replace" && arguments.positional.size() > 1) {
    arguments.positional[1] = escaped_texts(rendering, arguments.positional[1]);
  } else if (name == "join" || name == "format" || name == "format_map") {
    for (Value& value : arguments.positional) value = escaped_texts(rendering, value);
    for (auto& [key, value] : arguments.named) value = escaped_texts(rendering, value);
  }
  return as_markup(rendering, method(rendering, self, arguments));
}

Value call(Rendering& rendering, const Value& function, Arguments arguments) {
  rendering.spend(1 + arguments.positional.size() + arguments.named.size());
  rendering.check_defined(function);
  Object* const object = function.object();
  if (object == nullptr) rendering.refuse(fmt::format("'{}' object is not callable", function.type_name()));
  return object->call(rendering, std::move(arguments));
}

}  // namespace tessera::internal::jinja
