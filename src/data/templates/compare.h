// Truth, equality, order and membership, as in Python.
#pragma once

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

bool truth_of(Rendering& rendering, const Value& value);
bool are_equal(Rendering& rendering, const Value& left, const Value& right);
// left < right; refuses what Python cannot order.
bool is_less(Rendering& rendering, const Value& left, const Value& right);
// Of ==, !=, <, <=, > and >=.
bool compare(Rendering& rendering, const Value& left, std::string_view symbol, const Value& right);
// item in container
bool contains_item(Rendering& rendering, const Value& container, const Value& item);
const Value* find_entry(Rendering& rendering, const Dict& dict, const Value& key);
// Of entries that are to become a dict: a key that is there keeps its place.
void set_entry(Rendering& rendering, std::vector<std::pair<Value, Value>>& entries, const Value& key,
               const Value& value);
// Refuses lists and dicts as keys.
void check_hashable(Rendering& rendering, const Value& key);

}  // namespace tessera::internal::jinja
