// Filters that apply another filter or a test to each item: map, select, reject, selectattr, rejectattr.
#include <fmt/format.h>

#include "data/templates/arguments.h"
#include "data/templates/compare.h"
#include "data/templates/filters.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"

namespace tessera::internal::jinja {
namespace {

// The arguments behind the first `count`.
Arguments arguments_after(const Arguments& arguments, std::size_t count) {
  return {Values(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count), arguments.positional.end()),
          arguments.named};
}

const std::string& name_at(Rendering& rendering, const Arguments& arguments, std::size_t index, const char* what) {
  const std::string* const name = arguments.positional[index].text();
  if (name == nullptr) rendering.refuse(fmt::format("expected the name of a {}", what));
  return *name;
}

Value map_attribute(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "map", arguments, {"attribute", "default"});
  Values mapped;
  for (const Value& item : items_of(rendering, value)) {
    const Value found = follow_path(rendering, item, given.at(0));
    mapped.push_back(found.is_undefined() ? given.value_or(1, found) : found);
  }
  return rendering.iterator(std::move(mapped));
}

Value map_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  if (!truth_of(rendering, value)) return rendering.iterator({});
  if (arguments.positional.empty()) {
    for (const auto& [name, each] : arguments.named) {
      if (name == "attribute") return map_attribute(rendering, value, arguments);
    }
    rendering.refuse("map needs the name of a filter, or attribute=");
  }
  const std::string& name = name_at(rendering, arguments, 0, "filter");
  const Filter filter = find_filter(name);
  if (filter == nullptr) rendering.refuse(unknown_filter(name));
  const DepthGuard guard(rendering);  // map of map of map
  const Arguments others = arguments_after(arguments, 1);
  Values mapped;
  for (const Value& item : items_of(rendering, value)) mapped.push_back(filter(rendering, item, others));
  return rendering.iterator(std::move(mapped));
}

template <bool keeps, bool by_attribute>
Value choose(Rendering& rendering, const Value& value, const Arguments& arguments) {
  if (!truth_of(rendering, value)) return rendering.iterator({});
  constexpr std::size_t kNameAt = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty()) rendering.refuse("expected the name of an attribute");
  Test test = nullptr;
  Arguments others;
  if (arguments.positional.size() > kNameAt) {
    const std::string& name = name_at(rendering, arguments, kNameAt, "test");
    test = find_test(name);
    if (test == nullptr) rendering.refuse(unknown_test(name));
    others = arguments_after(arguments, kNameAt + 1);
  }
  Values chosen;
  for (const Value& item : items_of(rendering, value)) {
    const Value subject = by_attribute ? follow_path(rendering, item, arguments.positional[0]) : item;
    const bool holds = test == nullptr ? truth_of(rendering, subject) : test(rendering, subject, others);
    if (holds == keeps) chosen.push_back(item);
  }
  return rendering.iterator(std::move(chosen));
}

}  // namespace

const FilterTable& choosing_filters() {
  static const FilterTable table = {{"map", map_filter},
                                    {"select", choose<true, false>},
                                    {"reject", choose<false, false>},
                                    {"selectattr", choose<true, true>},
                                    {"rejectattr", choose<false, true>}};
  return table;
}

}  // namespace tessera::internal::jinja
