#include "data/templates/sequence.h"

#include <fmt/format.h>

#include <algorithm>

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
    return sequence->take();
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
  const auto* range = dynamic_cast<const Sequence*>(value.object());
  const bool is_range = range != nullptr && range->is_range();
  if (value.list() == nullptr && value.text() == nullptr && !is_range) return std::nullopt;
  const auto size = static_cast<std::int64_t>(*find_length(rendering, value));
  if (index < -size || index >= size) return std::nullopt;
  const auto at = static_cast<std::size_t>(index < 0 ? index + size : index);
  if (is_range) return range->at(at);
  if (const List* list = value.list()) return list->items[at];
  const std::string& text = *value.text();
  const std::size_t begin = byte_of_character(text, at);
  return Value(text.substr(begin, utf8_length(static_cast<unsigned char>(text[begin]))), value.is_markup());
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

}  // namespace tessera::internal::jinja
