// Filters (value | name) and tests (value is name) by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

using Filter = Value (*)(Rendering& rendering, const Value& value, const Arguments& arguments);
using Test = bool (*)(Rendering& rendering, const Value& value, const Arguments& arguments);

// Null: there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
// "no filter is named 'uper', did you mean 'upper'?"
std::string unknown_filter(std::string_view name);
std::string unknown_test(std::string_view name);

// Global functions: range, dict, namespace, raise_exception and so on.
struct GlobalFunction {
  std::string_view name;
  Value (*body)(Rendering& rendering, const Arguments& arguments);
};
const GlobalFunction* find_global(std::string_view name);

// The filters, file by file.
struct NamedFilter {
  std::string_view name;
  Filter filter;
};
using FilterTable = std::vector<NamedFilter>;
const FilterTable& text_filters();
const FilterTable& number_filters();
const FilterTable& sequence_filters();
const FilterTable& sorting_filters();
const FilterTable& choosing_filters();
Value tojson_filter(Rendering& rendering, const Value& value, const Arguments& arguments);

// What `attribute=` of a filter names: "function.name", "tags.0" or a number; for sort, several with commas between.
Value follow_path(Rendering& rendering, const Value& value, const Value& path);

}  // namespace tessera::internal::jinja
