// value.name, value[key], and calls: what Jinja2's sandbox finds there.
#pragma once

#include <string_view>

#include "data/templates/object.h"
#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// value.name: the attribute, else the item of that name, else undefined. Refuses attributes of what is undefined.
Value attribute_of(Rendering& rendering, const Value& value, std::string_view name);
// value[key]: the item, else the attribute of that name, else undefined.
Value item_of(Rendering& rendering, const Value& value, const Value& key);
// The filter `attr`: an attribute only.
Value pure_attribute_of(Rendering& rendering, const Value& value, std::string_view name);

Value call(Rendering& rendering, const Value& function, Arguments arguments);

// A method of a value; those of markup give markup.
Value call_method(Rendering& rendering, Method::Body method, std::string_view name, const Value& self,
                  Arguments arguments);

// The method that the sandbox allows; null: there is none, or it is refused when called.
Method::Body find_method(const Value& value, std::string_view name);

// Tables of methods by kind of value.
Method::Body find_text_method(std::string_view name);
Method::Body find_search_method(std::string_view name);  // of texts, too
Method::Body find_text_check(std::string_view name);     // of texts, too: isdigit and the like
Method::Body find_list_method(std::string_view name);    // of tuples, too
Method::Body find_dict_method(std::string_view name);

}  // namespace tessera::internal::jinja
