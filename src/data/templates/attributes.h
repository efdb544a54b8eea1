// value.name, value[key], and calls: what Jinja2's sandbox finds there.
#pragma once

#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// value.name: the attribute, else the item of that name, else undefined. Refuses attributes of what is undefined.
Value attribute_of(Rendering& rendering, const Value& value, std::string_view name);
// value[key]: the item, else the attribute of that name, else undefined.
Value item_of(Rendering& rendering, const Value& value, const Value& key);
// What `attribute=` of a filter names: "function.name", "tags.0" or a number; None: the value itself.
Value follow_path(Rendering& rendering, const Value& value, const Value& path);

Value call(Rendering& rendering, const Value& function, const Arguments& arguments);

}  // namespace tessera::internal::jinja
