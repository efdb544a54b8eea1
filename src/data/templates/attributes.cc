#include "data/templates/attributes.h"

#include <fmt/format.h>

#include "core/text.h"
#include "data/templates/functions.h"
#include "data/templates/sequence.h"

namespace tessera::internal::jinja {
namespace {

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", value.type_name(), printable(name, 60)));
}

// What Python's getattr finds, if the sandbox lets a template have it.
std::optional<Value> find_attribute(Rendering& rendering, const Value& value, std::string_view name) {
  if (const Function* method = find_method(rendering, value, name)) {
    return rendering.make<BoundFunction>(*method, value);
  }
  if (value.object() == nullptr || name.starts_with('_')) return std::nullopt;
  return value.object()->attribute(rendering, name);
}

}  // namespace

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
  if (const Dict* dict = value.dict()) {
    rendering.spend(dict->entries.size() / 8);
    if (const Value* entry = dict->find(key)) return *entry;
  }
  if (const std::string* name = key.text()) {
    if (auto found = find_attribute(rendering, value, *name)) return *std::move(found);
    return missing(value, *name);
  }
  if (key.integer()) {
    if (auto found = find_item_at(rendering, value, *key.integer())) return *std::move(found);
  }
  return Value::undefined(fmt::format("'{} object' has no such item", value.type_name()));
}

Value follow_path(Rendering& rendering, const Value& value, const Value& path) {
  if (path.is_none()) return value;
  if (path.text() == nullptr) return item_of(rendering, value, path);
  if (path.text()->find(',') != std::string::npos) rendering.refuse("several attributes are not supported");
  Value found = value;
  for (const std::string& part : split(*path.text(), '.')) {
    const bool is_index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    found = item_of(rendering, found, is_index ? Value(std::int64_t{std::stoi(part)}) : rendering.text(part));
  }
  return found;
}

Value call(Rendering& rendering, const Value& function, const Arguments& arguments) {
  rendering.spend(1 + arguments.positional.size() + arguments.named.size());
  rendering.check_defined(function);
  if (function.object() == nullptr) {
    rendering.refuse(fmt::format("'{}' object is not callable", function.type_name()));
  }
  return function.object()->call(rendering, arguments);
}

}  // namespace tessera::internal::jinja
