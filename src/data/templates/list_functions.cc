// Filters that look at the items of a value, or make new lists of them, and methods of dicts.
#include <fmt/format.h>

#include <algorithm>

#include "data/templates/functions.h"
#include "data/templates/python.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

Value length_of(const Call& call) {
  const auto length = find_length(call.rendering, call.self);
  if (!length) call.refuse(fmt::format("of a value of type '{}': it has none", call.self.type_name()));
  return Value::count(*length);
}

Value default_of(const Call& call) {
  const bool is_replaced = call.self.is_undefined() || (call.boolean(1, false) && !truth_of(call.self));
  if (!is_replaced) return call.self;
  return call.has(0) ? call.at(0) : call.rendering.text("");
}

template <bool wants_last>
Value end_of(const Call& call) {
  const bool has_length = find_length(call.rendering, call.self).has_value();
  if (wants_last && !has_length) call.refuse("needs a sequence: put the filter list before it");
  auto* const sequence = dynamic_cast<Sequence*>(call.self.object());
  const Values items = sequence != nullptr && !wants_last ? sequence->take(1) : items_of(call.rendering, call.self);
  if (items.empty()) return Value::undefined("no item: the sequence is empty");
  return wants_last ? items.back() : items.front();
}

Value reverse(const Call& call) {
  if (call.self.text() != nullptr) return slice_of(call.rendering, call.self, {}, {}, Value(std::int64_t{-1}));
  Values items = items_of(call.rendering, call.self);
  std::reverse(items.begin(), items.end());
  return call.rendering.generator(std::move(items));
}

Value join_items(const Call& call) {
  const std::string between = call.has(0) ? str_of(call.rendering, call.at(0)) : "";
  const Value path = call.value_or(1, Value());
  std::string all;
  bool is_first = true;
  for (const Value& item : items_of(call.rendering, call.self)) {
    call.rendering.spend_text(between.size());
    if (!std::exchange(is_first, false)) all += between;
    append_str(call.rendering, all, follow_path(call.rendering, item, path));
  }
  return call.rendering.text(std::move(all));
}

Values pairs_of(Rendering& rendering, const Dict& dict) {
  Values pairs;
  for (const auto& [key, value] : dict.entries) pairs.push_back(rendering.list({key, value}, /*is_tuple=*/true));
  return pairs;
}

Value items_filter(const Call& call) {
  if (call.self.is_undefined()) return call.rendering.generator({});
  if (call.self.dict() == nullptr) call.refuse("expects a mapping");
  return call.rendering.generator(pairs_of(call.rendering, *call.self.dict()));
}

// Texts compare without regard to case unless case_sensitive is true.
struct Keyed {
  Value key, item;
};

Value sort_key(const Call& call, const Value& value, bool is_case_sensitive) {
  if (is_case_sensitive || value.text() == nullptr) return value;
  call.rendering.spend_repeated(value.text()->size(), 16);
  return call.rendering.text(lower_case_of(*value.text()));
}

std::vector<Keyed> keyed_items(const Call& call, bool is_case_sensitive, const Value& path) {
  std::vector<Keyed> keyed;
  for (const Value& item : items_of(call.rendering, call.self)) {
    keyed.push_back({sort_key(call, follow_path(call.rendering, item, path), is_case_sensitive), item});
  }
  return keyed;
}

Value sorted(const Call& call, std::vector<Keyed> items, bool is_reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return order_of(call.rendering, is_reverse ? b.key : a.key, is_reverse ? a.key : b.key) < 0;
  });
  Values ordered;
  for (Keyed& each : items) ordered.push_back(std::move(each.item));
  return call.rendering.list(std::move(ordered));
}

Value sort_filter(const Call& call) {
  return sorted(call, keyed_items(call, call.boolean(1, false), call.value_or(2, Value())), call.boolean(0, false));
}

Value dictsort(const Call& call) {
  call.rendering.check_defined(call.self);
  if (call.self.dict() == nullptr) call.refuse("expects a mapping");
  std::vector<Keyed> keyed;
  for (const Value& pair : pairs_of(call.rendering, *call.self.dict())) {
    keyed.push_back({sort_key(call, pair.list()->items[0], call.boolean(0, false)), pair});
  }
  return sorted(call, std::move(keyed), false);
}

Value unique(const Call& call) {
  std::vector<Keyed> kept;
  Values items;
  for (Keyed& each : keyed_items(call, call.boolean(0, false), call.value_or(1, Value()))) {
    if (each.key.list() != nullptr || each.key.dict() != nullptr) call.refuse("of lists and dicts is not supported");
    const bool is_known = std::any_of(
        kept.begin(), kept.end(), [&](const Keyed& other) { return are_equal(call.rendering, each.key, other.key); });
    if (is_known) continue;
    items.push_back(each.item);
    kept.push_back(std::move(each));
  }
  return call.rendering.generator(std::move(items));
}

template <bool wants_largest>
Value extreme(const Call& call) {
  const Value all = sorted(call, keyed_items(call, call.boolean(0, false), call.value_or(1, Value())), wants_largest);
  const Values& items = all.list()->items;
  return items.empty() ? Value::undefined("no aggregated item: the sequence is empty") : items.front();
}

// The name of a filter or a test among the arguments, and the arguments behind it.
const std::string& name_at(const Call& call, std::size_t index) {
  const Values& given = call.arguments.positional;
  if (index >= given.size() || given[index].text() == nullptr) call.refuse("needs a name");
  return *given[index].text();
}
Arguments arguments_behind(const Call& call, std::size_t index) {
  const Values& given = call.arguments.positional;
  return {Values(given.begin() + static_cast<std::ptrdiff_t>(index) + 1, given.end()), call.arguments.named};
}

// None has no items either, as far as these are concerned.
Values items_to_choose_from(const Call& call) {
  return truth_of(call.self) ? items_of(call.rendering, call.self) : Values{};
}

// map('upper') or map(attribute='name', default='')
Value map_items(const Call& call) {
  Rendering& rendering = call.rendering;
  Values mapped;
  if (call.arguments.positional.empty()) {
    static constexpr Function kAttribute = {"map", "attribute default?", nullptr};
    const Call given(rendering, kAttribute, call.self, call.arguments);
    for (const Value& item : items_to_choose_from(call)) {
      const Value found = follow_path(rendering, item, given.at(0));
      mapped.push_back(found.is_undefined() ? given.value_or(1, found) : found);
    }
    return rendering.generator(std::move(mapped));
  }
  const Function& filter = filter_of(rendering, name_at(call, 0));
  const PlaceGuard guard(rendering);  // map of map of map
  const Arguments others = arguments_behind(call, 0);
  for (const Value& item : items_to_choose_from(call)) {
    mapped.push_back(call_function(rendering, filter, item, others));
  }
  return rendering.generator(std::move(mapped));
}

// select('test'), selectattr('attribute', 'test') and their opposites; without a test: by truth.
template <bool keeps, bool by_attribute>
Value choose(const Call& call) {
  Rendering& rendering = call.rendering;
  constexpr std::size_t kTestAt = by_attribute ? 1 : 0;
  const Value path = by_attribute ? rendering.text(name_at(call, 0)) : Value();
  const bool has_test = call.arguments.positional.size() > kTestAt;
  const Function* const test = has_test ? &test_of(rendering, name_at(call, kTestAt)) : nullptr;
  const Arguments others = has_test ? arguments_behind(call, kTestAt) : Arguments{};
  Values chosen;
  for (const Value& item : items_to_choose_from(call)) {
    const Value subject = follow_path(rendering, item, path);
    const bool holds = truth_of(test == nullptr ? subject : call_function(rendering, *test, subject, others));
    if (holds == keeps) chosen.push_back(item);
  }
  return rendering.generator(std::move(chosen));
}

Value get(const Call& call) {
  call.rendering.spend(1 + call.self.dict()->entries.size() / 8);
  const Value* const found = call.self.dict()->find(call.at(0));
  return found != nullptr ? *found : call.value_or(1, Value());
}

enum class Part { kItems, kKeys, kValues };

template <Part part>
Value view(const Call& call) {
  Values items;
  for (Value& pair : pairs_of(call.rendering, *call.self.dict())) {
    items.push_back(part == Part::kItems ? pair : pair.list()->items[part == Part::kKeys ? 0 : 1]);
  }
  return call.rendering.make<Sequence>(std::move(items), /*is_generator=*/false);
}

}  // namespace

Functions list_filters() {
  static constexpr Function kFilters[] = {
      {"length", "", length_of},
      {"count", "", length_of},
      {"default", "default_value? boolean?", default_of},
      {"d", "default_value? boolean?", default_of},
      {"first", "", end_of<false>},
      {"last", "", end_of<true>},
      {"list", "", [](const Call& call) { return call.rendering.list(items_of(call.rendering, call.self)); }},
      {"reverse", "", reverse},
      {"join", "d? attribute?", join_items},
      {"items", "", items_filter},
      {"sort", "reverse? case_sensitive? attribute?", sort_filter},
      {"dictsort", "case_sensitive?", dictsort},
      {"unique", "case_sensitive? attribute?", unique},
      {"min", "case_sensitive? attribute?", extreme<false>},
      {"max", "case_sensitive? attribute?", extreme<true>},
      {"map", "...", map_items},
      {"select", "...", choose<true, false>},
      {"reject", "...", choose<false, false>},
      {"selectattr", "...", choose<true, true>},
      {"rejectattr", "...", choose<false, true>},
      {"tojson", "ensure_ascii? indent? separators? sort_keys?", tojson},
  };
  return kFilters;
}

Functions dict_methods() {
  static constexpr Function kMethods[] = {
      {"get", "key default?", get},
      {"items", "", view<Part::kItems>},
      {"keys", "", view<Part::kKeys>},
      {"values", "", view<Part::kValues>},
  };
  return kMethods;
}

}  // namespace tessera::internal::jinja
