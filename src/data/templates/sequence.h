// Items of values: iteration, length, indices and slices, as in Python.
#pragma once

#include <cstddef>
#include <optional>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// What a loop visits: items, the keys of a dict, the characters of a text; nothing for what is undefined.
std::optional<Values> find_items(Rendering& rendering, const Value& value);
Values items_of(Rendering& rendering, const Value& value);  // refuses what has none
Values characters_of(Rendering& rendering, const std::string& text);

std::optional<std::size_t> find_length(Rendering& rendering, const Value& value);
std::size_t length_of(Rendering& rendering, const Value& value);

// value[index] of a list, a tuple, a text or a range; nothing: out of bounds, or another kind of value.
std::optional<Value> find_item_at(Rendering& rendering, const Value& value, std::int64_t index);
// value[start:stop:step]; nothing: the value cannot be sliced, or a bound is neither None nor a whole number.
std::optional<Value> find_slice(Rendering& rendering, const Value& value, const Value& start, const Value& stop,
                                const Value& step);
// start and stop of [start:stop], as Python cuts them to a length.
std::int64_t cut_bound(std::int64_t bound, std::int64_t lowest, std::int64_t highest, std::int64_t length);

}  // namespace tessera::internal::jinja
