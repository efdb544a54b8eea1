// Items, slices and attributes of values, and calls of them.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "data/templates/functions.h"
#include "data/templates/python.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

Values characters_of(Rendering& rendering, const std::string& text) {
  rendering.spend(text.size());
  Values characters;
  for_each_character(text, [&](char32_t, std::size_t begin, std::size_t end) {
    characters.push_back(Value(text.substr(begin, end - begin)));
  });
  return characters;
}

std::int64_t bound_of(Rendering& rendering, const Value& value, std::int64_t preset) {
  if (value.is_none()) return preset;
  rendering.check_defined(value);
  if (!value.integer()) rendering.refuse(fmt::format("a slice needs whole numbers, found '{}'", value.type_name()));
  return *value.integer();
}

// The indices that a slice picks, in its order.
std::vector<std::size_t> indices_of_slice(Rendering& rendering, std::size_t length, const Value& start,
                                          const Value& stop, const Value& step) {
  const auto size = static_cast<std::int64_t>(length);
  const std::int64_t by = bound_of(rendering, step, 1);
  if (by == 0) rendering.refuse("slice step cannot be zero");
  const std::int64_t lowest = by < 0 ? -1 : 0, highest = by < 0 ? size - 1 : size;
  const auto cut = [&](const Value& value, std::int64_t preset) {
    if (value.is_none()) return preset;
    const std::int64_t bound = bound_of(rendering, value, 0);
    return std::clamp(bound < 0 ? (bound < -size ? lowest : bound + size) : bound, lowest, std::max(lowest, highest));
  };
  const std::int64_t first = cut(start, by < 0 ? highest : lowest), last = cut(stop, by < 0 ? lowest : highest);
  std::vector<std::size_t> indices;
  // A step beyond the size picks one item, and cannot overflow.
  const std::int64_t stride = std::clamp(by, -size - 1, size + 1);
  for (std::int64_t i = first; by > 0 ? i < last : i > last; i += stride) {
    rendering.spend(1);
    indices.push_back(static_cast<std::size_t>(i));
  }
  return indices;
}

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

Values items_of(Rendering& rendering, const Value& value) {
  if (const List* list = value.list()) {
    rendering.spend(list->items.size());
    return list->items;
  }
  if (const Dict* dict = value.dict()) {
    rendering.spend(dict->entries.size());
    Values keys;
    for (const auto& [key, entry] : dict->entries) keys.push_back(key);
    return keys;
  }
  if (const std::string* text = value.text()) return characters_of(rendering, *text);
  if (value.is_undefined()) return {};
  if (auto* sequence = dynamic_cast<Sequence*>(value.object())) {
    rendering.spend(sequence->length());
    return sequence->take(sequence->length());
  }
  rendering.refuse(fmt::format("'{}' object is not iterable", value.type_name()));
}

std::optional<std::size_t> find_length(Rendering& rendering, const Value& value) {
  if (const List* list = value.list()) return list->items.size();
  if (const Dict* dict = value.dict()) return dict->entries.size();
  if (const std::string* text = value.text()) {
    rendering.spend_text(text->size());
    return num_characters(*text);
  }
  if (value.is_undefined()) return 0;
  const auto* sequence = dynamic_cast<const Sequence*>(value.object());
  if (sequence == nullptr || sequence->is_generator()) return std::nullopt;
  return sequence->length();
}

std::optional<Value> find_item_at(Rendering& rendering, const Value& value, std::int64_t index) {
  if (value.list() == nullptr && value.text() == nullptr) return std::nullopt;
  const auto size = static_cast<std::int64_t>(*find_length(rendering, value));
  if (index < -size || index >= size) return std::nullopt;
  if (index < 0) index += size;
  if (const List* list = value.list()) return list->items[static_cast<std::size_t>(index)];
  return slice_of(rendering, value, Value(index), Value(index + 1), {});
}

Value slice_of(Rendering& rendering, const Value& value, const Value& start, const Value& stop, const Value& step) {
  rendering.check_defined(value);
  if (const List* list = value.list()) {
    Values picked;
    for (const std::size_t i : indices_of_slice(rendering, list->items.size(), start, stop, step)) {
      picked.push_back(list->items[i]);
    }
    return rendering.list(std::move(picked), list->is_tuple);
  }
  const std::string* const text = value.text();
  if (value.object() != nullptr) rendering.refuse("slices of lists and texts only are supported: use the filter list");
  if (text == nullptr) return Value::undefined(fmt::format("'{}' object cannot be sliced", value.type_name()));
  rendering.spend(text->size());
  std::vector<std::size_t> begins;  // of each character, and the end
  for_each_character(*text, [&](char32_t, std::size_t begin, std::size_t) { begins.push_back(begin); });
  begins.push_back(text->size());
  std::string part;
  for (const std::size_t i : indices_of_slice(rendering, begins.size() - 1, start, stop, step)) {
    part.append(*text, begins[i], begins[i + 1] - begins[i]);
  }
  return Value(std::move(part), value.is_markup());
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
