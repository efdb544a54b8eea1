// What Python does with values: operators, text, items and attributes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// All but `or` and `and`, which may leave their right side alone.
Value calculate(Rendering& rendering, std::string_view symbol, const Value& left, const Value& right);
Value negative(Rendering& rendering, const Value& value);  // -value

bool truth_of(const Value& value);
bool are_equal(Rendering& rendering, const Value& left, const Value& right);
// Less than zero, zero, more; 2 where one is not a number. Refuses what Python cannot order.
int order_of(Rendering& rendering, const Value& left, const Value& right);
bool contains(Rendering& rendering, const Value& container, const Value& item);  // item in container

// str(value): what {{ value }} writes. Nothing for what is undefined.
void append_str(Rendering& rendering, std::string& text, const Value& value);
std::string str_of(Rendering& rendering, const Value& value);
// repr of a float: the shortest digits that read back the same, "1.0", "1e+16", "nan".
std::string real_text(double value);

// What a loop visits: items, the keys of a dict, the characters of a text, nothing of what is undefined. Refuses other
// values.
Values items_of(Rendering& rendering, const Value& value);
// Nothing: it has no length.
std::optional<std::size_t> find_length(Rendering& rendering, const Value& value);
// value[index] of a list or a text; nothing: out of bounds, or another kind of value.
std::optional<Value> find_item_at(Rendering& rendering, const Value& value, std::int64_t index);
// value[start:stop:step] of a list or a text, where None is an absent bound; undefined: another kind of value.
Value slice_of(Rendering& rendering, const Value& value, const Value& start, const Value& stop, const Value& step);

// value.name: the attribute, else the item of that name, else undefined. Refuses attributes of what is undefined.
Value attribute_of(Rendering& rendering, const Value& value, std::string_view name);
// value[key]: the item, else the attribute of that name, else undefined.
Value item_of(Rendering& rendering, const Value& value, const Value& key);
// What `attribute=` of a filter names: "function.name", "tags.0" or a number; None: the value itself.
Value follow_path(Rendering& rendering, const Value& value, const Value& path);

Value call(Rendering& rendering, const Value& function, const Arguments& arguments);

}  // namespace tessera::internal::jinja
