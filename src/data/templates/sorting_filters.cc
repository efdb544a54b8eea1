// Filters that order items: sort, unique, groupby, min and max, dictsort. Texts compare without regard to case unless
// case_sensitive is true.
#include <algorithm>

#include "core/text.h"
#include "data/templates/arguments.h"
#include "data/templates/compare.h"
#include "data/templates/filters.h"
#include "data/templates/sequence.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

Value without_case(Rendering& rendering, const Value& value) {
  if (value.text() == nullptr) return value;
  rendering.spend_repeated(value.text()->size(), 16);
  return rendering.text(lower_case_of(*value.text()));
}

struct Keyed {
  Value key, item;
};

// `path`: null or None for the item itself; a text of several, with commas between, for sort.
Value key_of(Rendering& rendering, const Value& item, const Value* path, bool is_case_sensitive, bool may_be_many) {
  const auto finished = [&](const Value& key) { return is_case_sensitive ? key : without_case(rendering, key); };
  if (path == nullptr || path->is_none()) return finished(item);
  if (!may_be_many || path->text() == nullptr || path->text()->find(',') == std::string::npos) {
    return finished(follow_path(rendering, item, *path));
  }
  Values keys;
  for (const std::string& part : split(*path->text(), ',')) {
    keys.push_back(finished(follow_path(rendering, item, rendering.text(part))));
  }
  return rendering.list(std::move(keys));
}

void sort_by_key(Rendering& rendering, std::vector<Keyed>& items, bool is_reverse) {
  rendering.spend(items.size());
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return is_reverse ? is_less(rendering, b.key, a.key) : is_less(rendering, a.key, b.key);
  });
}

std::vector<Keyed> keyed_items(Rendering& rendering, const Value& value, const Value* path, bool is_case_sensitive,
                               bool may_be_many) {
  std::vector<Keyed> keyed;
  for (Value& item : items_of(rendering, value)) {
    Value key = key_of(rendering, item, path, is_case_sensitive, may_be_many);
    keyed.push_back({std::move(key), std::move(item)});
  }
  return keyed;
}

Value list_of(Rendering& rendering, std::vector<Keyed> keyed) {
  Values items;
  for (Keyed& each : keyed) items.push_back(std::move(each.item));
  return rendering.list(std::move(items));
}

Value sort_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<Keyed> keyed = keyed_items(rendering, value, given.find(2), given.boolean(1, false), true);
  sort_by_key(rendering, keyed, given.boolean(0, false));
  return list_of(rendering, std::move(keyed));
}

Value unique_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "unique", arguments, {"case_sensitive", "attribute"});
  std::vector<Keyed> kept;
  for (Keyed& each : keyed_items(rendering, value, given.find(1), given.boolean(0, false), false)) {
    check_hashable(rendering, each.key);
    const bool is_known = std::any_of(kept.begin(), kept.end(),
                                      [&](const Keyed& other) { return are_equal(rendering, each.key, other.key); });
    if (!is_known) kept.push_back(std::move(each));
  }
  Values items;
  for (Keyed& each : kept) items.push_back(std::move(each.item));
  return rendering.iterator(std::move(items));
}

template <bool wants_largest>
Value extreme_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, wants_largest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  std::vector<Keyed> keyed = keyed_items(rendering, value, given.find(1), given.boolean(0, false), false);
  if (keyed.empty()) return Value::undefined("no aggregated item: the sequence is empty");
  std::size_t best = 0;
  for (std::size_t i = 1; i < keyed.size(); ++i) {
    const bool is_better = wants_largest ? is_less(rendering, keyed[best].key, keyed[i].key)
                                         : is_less(rendering, keyed[i].key, keyed[best].key);
    if (is_better) best = i;
  }
  return keyed[best].item;
}

Value groupby_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const auto found = [&](const Value& item) {
    const Value key = follow_path(rendering, item, given.at(0));
    return key.is_undefined() ? given.value_or(1, key) : key;
  };
  const bool is_case_sensitive = given.boolean(2, false);
  std::vector<Keyed> keyed;
  for (Value& item : items_of(rendering, value)) {
    const Value key = found(item);
    keyed.push_back({is_case_sensitive ? key : without_case(rendering, key), std::move(item)});
  }
  sort_by_key(rendering, keyed, false);
  Values groups;
  for (std::size_t begin = 0; begin < keyed.size();) {
    Values members;
    std::size_t end = begin;
    for (; end < keyed.size() && are_equal(rendering, keyed[end].key, keyed[begin].key); ++end) {
      members.push_back(keyed[end].item);
    }
    if (end == begin) members.push_back(keyed[end++].item);  // not a number: equal to nothing
    const Value name = found(keyed[begin].item);
    groups.push_back(rendering.tuple({name, rendering.list(std::move(members))}, /*is_group=*/true));
    begin = end;
  }
  return rendering.list(std::move(groups));
}

Value dictsort_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.text(1, "key");
  if (by != "key" && by != "value") rendering.refuse("dictsort sorts by key or value");
  rendering.check_defined(value);
  if (value.dict() == nullptr) rendering.refuse("dictsort expects a mapping");
  std::vector<Keyed> keyed;
  for (const auto& [key, each] : value.dict()->entries) {
    const Value& chosen = by == "key" ? key : each;
    keyed.push_back({given.boolean(0, false) ? chosen : without_case(rendering, chosen), rendering.tuple({key, each})});
  }
  sort_by_key(rendering, keyed, given.boolean(2, false));
  return list_of(rendering, std::move(keyed));
}

}  // namespace

const FilterTable& sorting_filters() {
  static const FilterTable table = {{"sort", sort_filter},          {"unique", unique_filter},
                                    {"min", extreme_filter<false>}, {"max", extreme_filter<true>},
                                    {"groupby", groupby_filter},    {"dictsort", dictsort_filter}};
  return table;
}

}  // namespace tessera::internal::jinja
