#include "data/templates/sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

bool is_bound(const Value& value) {
  return value.is_none() || value.integer();
}

// The indices that a slice picks, in its order.
std::vector<std::size_t> indices_of_slice(Rendering& rendering, std::size_t length, const Value& start,
                                          const Value& stop, const Value& step) {
  const auto number = [](const Value& value) { return *value.integer(); };
  const std::int64_t by = step.is_none() ? 1 : number(step);
  if (by == 0) rendering.refuse("slice step cannot be zero");
  const auto size = static_cast<std::int64_t>(length);
  const std::int64_t lowest = by < 0 ? -1 : 0, highest = by < 0 ? size - 1 : size;
  const std::int64_t first =
      start.is_none() ? (by < 0 ? highest : lowest) : cut_bound(number(start), lowest, highest, size);
  const std::int64_t last =
      stop.is_none() ? (by < 0 ? lowest : highest) : cut_bound(number(stop), lowest, highest, size);
  std::vector<std::size_t> indices;
  if (by > 0 ? first >= last : first <= last) return indices;
  const std::uint64_t distance = static_cast<std::uint64_t>(by > 0 ? last - first : first - last);
  const std::uint64_t stride = by > 0 ? static_cast<std::uint64_t>(by) : 0 - static_cast<std::uint64_t>(by);
  const std::uint64_t count = (distance - 1) / stride + 1;
  rendering.spend(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::size_t>(first + static_cast<std::int64_t>(i) * by));
  }
  return indices;
}

std::string slice_of_text(Rendering& rendering, const std::string& text, const Value& start, const Value& stop,
                          const Value& step) {
  rendering.spend_text(text.size());
  const std::size_t length = num_characters(text);
  if (length == text.size()) {  // bytes are characters
    std::string part;
    for (const std::size_t i : indices_of_slice(rendering, length, start, stop, step)) part += text[i];
    return part;
  }
  rendering.spend(length);
  std::vector<std::size_t> begins;  // of each character, and the end
  for_each_character(text, [&](char32_t, std::size_t begin, std::size_t) { begins.push_back(begin); });
  begins.push_back(text.size());
  std::string part;
  for (const std::size_t i : indices_of_slice(rendering, length, start, stop, step)) {
    part.append(text, begins[i], begins[i + 1] - begins[i]);
  }
  return part;
}

Values pick(const Values& items, const std::vector<std::size_t>& indices) {
  Values picked;
  for (const std::size_t i : indices) picked.push_back(items[i]);
  return picked;
}

}  // namespace

std::int64_t cut_bound(std::int64_t bound, std::int64_t lowest, std::int64_t highest, std::int64_t length) {
  if (bound < 0) bound = bound < -length ? lowest : bound + length;
  return std::clamp(bound, lowest, std::max(lowest, highest));
}

Values characters_of(Rendering& rendering, const std::string& text) {
  rendering.spend(text.size());
  Values characters;
  for_each_character(text, [&](char32_t, std::size_t begin, std::size_t end) {
    characters.push_back(Value(text.substr(begin, end - begin)));
  });
  return characters;
}

std::optional<Values> find_items(Rendering& rendering, const Value& value) {
  if (const Values* items = value.items()) {
    rendering.spend(items->size());
    return *items;
  }
  if (const Dict* dict = value.dict()) {
    rendering.spend(dict->entries.size());
    Values keys;
    for (const auto& [key, entry] : dict->entries) keys.push_back(key);
    return keys;
  }
  if (const std::string* text = value.text()) return characters_of(rendering, *text);
  if (value.is_undefined()) return Values{};
  if (Object* object = value.object()) return object->items(rendering);
  return std::nullopt;
}

Values items_of(Rendering& rendering, const Value& value) {
  auto items = find_items(rendering, value);
  if (!items) rendering.refuse(fmt::format("'{}' object is not iterable", value.type_name()));
  return *std::move(items);
}

std::optional<std::size_t> find_length(Rendering& rendering, const Value& value) {
  if (const Values* items = value.items()) return items->size();
  if (const Dict* dict = value.dict()) return dict->entries.size();
  if (const std::string* text = value.text()) {
    rendering.spend_text(text->size());
    return num_characters(*text);
  }
  if (value.is_undefined()) return 0;
  if (Object* object = value.object()) return object->length(rendering);
  return std::nullopt;
}

std::size_t length_of(Rendering& rendering, const Value& value) {
  const auto length = find_length(rendering, value);
  if (!length) rendering.refuse(fmt::format("object of type '{}' has no len()", value.type_name()));
  return *length;
}

std::optional<Value> find_item_at(Rendering& rendering, const Value& value, std::int64_t index) {
  if (value.dict() != nullptr || value.is_undefined()) return std::nullopt;
  const auto length = find_length(rendering, value);
  if (!length) return std::nullopt;
  const auto size = static_cast<std::int64_t>(*length);
  if (index < -size || index >= size) return std::nullopt;
  const auto at = static_cast<std::size_t>(index < 0 ? index + size : index);
  if (const Values* items = value.items()) return (*items)[at];
  if (Object* object = value.object()) return object->item(rendering, at);
  const std::string& text = *value.text();
  const std::size_t begin = byte_of_character(text, at);
  return rendering.text_like(value, text.substr(begin, utf8_length(static_cast<unsigned char>(text[begin]))));
}

std::optional<Value> find_slice(Rendering& rendering, const Value& value, const Value& start, const Value& stop,
                                const Value& step) {
  if (!is_bound(start) || !is_bound(stop) || !is_bound(step)) return std::nullopt;
  if (const std::string* text = value.text()) {
    return rendering.text_like(value, slice_of_text(rendering, *text, start, stop, step));
  }
  if (const Values* items = value.items()) {
    Values picked = pick(*items, indices_of_slice(rendering, items->size(), start, stop, step));
    return value.list() != nullptr ? rendering.list(std::move(picked)) : rendering.tuple(std::move(picked));
  }
  if (value.object() == nullptr || value.object()->type_name() != "range") return std::nullopt;
  const Values items = items_of(rendering, value);
  return rendering.list(pick(items, indices_of_slice(rendering, items.size(), start, stop, step)));
}

}  // namespace tessera::internal::jinja
