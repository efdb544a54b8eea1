// Items of values: iteration, length, indices and slices, as in Python.
#pragma once

#include <cstddef>
#include <optional>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// What a loop visits: items, the keys of a dict, the characters of a text, nothing of what is undefined. Refuses other
// values.
Values items_of(Rendering& rendering, const Value& value);
// Nothing: it has no length.
std::optional<std::size_t> find_length(Rendering& rendering, const Value& value);
// value[index] of a list, a text or a range; nothing: out of bounds, or another kind of value.
std::optional<Value> find_item_at(Rendering& rendering, const Value& value, std::int64_t index);
// value[start:stop:step] of a list or a text, where None is an absent bound; undefined: another kind of value.
Value slice_of(Rendering& rendering, const Value& value, const Value& start, const Value& stop, const Value& step);

}  // namespace tessera::internal::jinja
