// Filters that look at the items of a value, or make new lists of them.
#include <fmt/format.h>

#include <algorithm>

#include "data/templates/arguments.h"
#include "data/templates/attributes.h"
#include "data/templates/compare.h"
#include "data/templates/filters.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

Value length_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "length", arguments, {});
  return Value(static_cast<std::int64_t>(length_of(rendering, value)));
}

Value default_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "default", arguments, {"default_value", "boolean"});
  const bool is_replaced = value.is_undefined() || (given.boolean(1, false) && !truth_of(rendering, value));
  if (!is_replaced) return value;
  return given.has(0) ? given.at(0) : rendering.text("");
}

Value first_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "first", arguments, {});
  std::optional<Value> first;
  if (auto* iterator = dynamic_cast<Iterator*>(value.object())) {
    first = iterator->next();
  } else if (const std::string* text = value.text()) {
    first = find_item_at(rendering, value, text->empty() ? -1 : 0);
  } else if (const Values items = items_of(rendering, value); !items.empty()) {
    first = items[0];
  }
  return first ? *std::move(first) : Value::undefined("no first item: the sequence is empty");
}

Value last_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "last", arguments, {});
  if (value.object() != nullptr && !value.object()->length(rendering)) {
    rendering.refuse(fmt::format("'{}' object is not reversible", value.type_name()));
  }
  const Values items = items_of(rendering, value);
  return items.empty() ? Value::undefined("no last item: the sequence is empty") : items.back();
}

Value list_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "list", arguments, {});
  return rendering.list(items_of(rendering, value));
}

Value join_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "join", arguments, {"d", "attribute"});
  const std::string between = given.has(0) ? str_of(rendering, given.at(0)) : "";
  const bool has_path = given.has(1) && !given.at(1).is_none();
  std::string all;
  bool is_first = true;
  for (const Value& item : items_of(rendering, value)) {
    rendering.spend_text(between.size());
    if (!std::exchange(is_first, false)) all += between;
    append_str(rendering, all, has_path ? follow_path(rendering, item, given.at(1)) : item);
  }
  return rendering.text(std::move(all));
}

Value reverse_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "reverse", arguments, {});
  if (const std::string* text = value.text()) {
    std::string ordered;
    for (std::size_t end = text->size(); end > 0;) {
      const std::size_t begin = utf8_previous(*text, end);
      ordered.append(*text, begin, end - begin);
      end = begin;
    }
    return rendering.text(std::move(ordered));
  }
  Values items = items_of(rendering, value);
  std::reverse(items.begin(), items.end());
  return rendering.iterator(std::move(items));
}

Value items_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "items", arguments, {});
  if (value.is_undefined()) return rendering.iterator({});
  if (value.dict() == nullptr) rendering.refuse("items expects a mapping");
  Values pairs;
  for (const auto& [key, each] : value.dict()->entries) pairs.push_back(rendering.tuple({key, each}));
  return rendering.iterator(std::move(pairs));
}

Value batch_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = given.integer(0, 0);
  const bool fills = given.has(1) && !given.at(1).is_none();
  Values batches, batch;
  for (const Value& item : items_of(rendering, value)) {
    if (static_cast<std::int64_t>(batch.size()) == size) batches.push_back(rendering.list(std::exchange(batch, {})));
    batch.push_back(item);
  }
  if (!batch.empty()) {
    const auto missing = size - static_cast<std::int64_t>(batch.size());
    if (fills && missing > 0) {
      rendering.spend(static_cast<std::size_t>(missing));
      batch.insert(batch.end(), static_cast<std::size_t>(missing), given.at(1));
    }
    batches.push_back(rendering.list(std::move(batch)));
  }
  return rendering.iterator(std::move(batches));
}

Value slice_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "slice", arguments, {"slices", "fill_with"}, 1);
  const std::int64_t count = given.integer(0, 0);
  if (count == 0) rendering.refuse("integer division or modulo by zero");
  const bool fills = given.has(1) && !given.at(1).is_none();
  const Values items = items_of(rendering, value);
  const auto length = static_cast<std::int64_t>(items.size());
  Values slices;
  auto at = items.begin();
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_longer = i < length % count;
    const auto end = at + (length / count + (is_longer ? 1 : 0));
    Values slice(at, end);
    if (fills && !is_longer) slice.push_back(given.at(1));
    slices.push_back(rendering.list(std::move(slice)));
    at = end;
  }
  return rendering.iterator(std::move(slices));
}

Value attr_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "attr", arguments, {"name"}, 1);
  return pure_attribute_of(rendering, value, given.text(0, ""));
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable table = {
      {"length", length_filter},   {"count", length_filter}, {"default", default_filter}, {"d", default_filter},
      {"first", first_filter},     {"last", last_filter},    {"list", list_filter},       {"join", join_filter},
      {"reverse", reverse_filter}, {"items", items_filter},  {"batch", batch_filter},     {"slice", slice_filter},
      {"attr", attr_filter},
  };
  return table;
}

}  // namespace tessera::internal::jinja
