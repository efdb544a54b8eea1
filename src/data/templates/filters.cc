#include "data/templates/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/text.h"
#include "data/templates/attributes.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

// Of Jinja2, without use in chat templates.
constexpr std::array<std::string_view, 7> kUnsupportedFilters = {"filesizeformat", "pprint",  "random",     "urlize",
                                                                 "wordwrap",       "xmlattr", "forceescape"};

std::vector<const FilterTable*> all_tables() {
  return {&text_filters(), &number_filters(), &sequence_filters(), &sorting_filters(), &choosing_filters()};
}

}  // namespace

Filter find_filter(std::string_view name) {
  if (name == "tojson") return tojson_filter;
  for (const FilterTable* table : all_tables()) {
    for (const NamedFilter& each : *table) {
      if (each.name == name) return each.filter;
    }
  }
  return nullptr;
}

std::string unknown_filter(std::string_view name) {
  if (std::find(kUnsupportedFilters.begin(), kUnsupportedFilters.end(), name) != kUnsupportedFilters.end()) {
    return fmt::format("the filter '{}' is not supported", name);
  }
  std::vector<std::string> names = {"tojson"};
  for (const FilterTable* table : all_tables()) {
    for (const NamedFilter& each : *table) names.emplace_back(each.name);
  }
  return fmt::format("no filter is named '{}'{}", printable(name, 60), did_you_mean(name, names));
}

Value follow_path(Rendering& rendering, const Value& value, const Value& path) {
  if (path.text() == nullptr) return item_of(rendering, value, path);
  Value found = value;
  for (const std::string& part : split(*path.text(), '.')) {
    const bool is_index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string::npos;
    found = is_index ? item_of(rendering, found, Value(static_cast<std::int64_t>(std::stoll(part))))
                     : item_of(rendering, found, rendering.text(part));
  }
  return found;
}

}  // namespace tessera::internal::jinja
