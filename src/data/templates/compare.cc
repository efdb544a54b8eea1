#include "data/templates/compare.h"

#include <fmt/format.h>

#include <cmath>

#include "data/templates/sequence.h"

namespace tessera::internal::jinja {
namespace {

// -1, 0 or 1; 2 where one is not a number. Exact between whole numbers and floats.
int order_of_numbers(const Value& left, const Value& right) {
  if (!left.is_real() && !right.is_real()) {
    const std::int64_t a = *left.integer(), b = *right.integer();
    return a < b ? -1 : a > b ? 1 : 0;
  }
  const long double a = left.is_real() ? *left.number() : static_cast<long double>(*left.integer());
  const long double b = right.is_real() ? *right.number() : static_cast<long double>(*right.integer());
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : a > b ? 1 : 0;
}

bool are_equal_items(Rendering& rendering, const Values& left, const Values& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!are_equal(rendering, left[i], right[i])) return false;
  }
  return true;
}

bool are_equal_dicts(Rendering& rendering, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    const Value* const other = find_entry(rendering, right, key);
    if (other == nullptr || !are_equal(rendering, value, *other)) return false;
  }
  return true;
}

[[noreturn]] void refuse_order(Rendering& rendering, std::string_view symbol, const Value& left, const Value& right) {
  rendering.check_defined(left);
  rendering.check_defined(right);
  rendering.refuse(fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol, left.type_name(),
                               right.type_name()));
}

// Less than zero, zero, more; 2 where neither is less.
int order_of(Rendering& rendering, const Value& left, std::string_view symbol, const Value& right) {
  rendering.spend(1);
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right);
  if (left.text() != nullptr && right.text() != nullptr) {  // bytes of UTF-8 are in the order of characters
    rendering.spend_text(std::min(left.text()->size(), right.text()->size()));
    return left.text()->compare(*right.text()) < 0 ? -1 : *left.text() == *right.text() ? 0 : 1;
  }
  const bool are_lists = left.list() != nullptr && right.list() != nullptr;
  const bool are_tuples = left.tuple() != nullptr && right.tuple() != nullptr;
  if (!are_lists && !are_tuples) refuse_order(rendering, symbol, left, right);
  const Values &a = *left.items(), &b = *right.items();
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!are_equal(rendering, a[i], b[i])) return order_of(rendering, a[i], symbol, b[i]);
  }
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

}  // namespace

bool truth_of(Rendering& rendering, const Value& value) {
  if (value.is_bool()) return value.is_true();
  if (value.is_none() || value.is_undefined()) return false;
  if (const auto number = value.number()) return *number != 0;
  if (const std::string* text = value.text()) return !text->empty();
  if (const Values* items = value.items()) return !items->empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  const auto length = value.object()->length(rendering);
  return !length || *length > 0;
}

bool are_equal(Rendering& rendering, const Value& left, const Value& right) {
  rendering.spend(1);
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right) == 0;
  if (const std::string* text = left.text()) {
    if (right.text() == nullptr || text->size() != right.text()->size()) return false;
    rendering.spend_text(text->size());
    return *text == *right.text();
  }
  if (left.list() != nullptr && right.list() != nullptr) {
    return are_equal_items(rendering, left.list()->items, right.list()->items);
  }
  if (left.tuple() != nullptr && right.tuple() != nullptr) {
    return are_equal_items(rendering, left.tuple()->items, right.tuple()->items);
  }
  if (left.dict() != nullptr && right.dict() != nullptr) return are_equal_dicts(rendering, *left.dict(), *right.dict());
  if (left.is_undefined() || left.is_none()) {
    return left.is_undefined() == right.is_undefined() && left.is_none() == right.is_none();
  }
  return left.object() != nullptr && left.object() == right.object();
}

bool is_less(Rendering& rendering, const Value& left, const Value& right) {
  return order_of(rendering, left, "<", right) < 0;
}

bool compare(Rendering& rendering, const Value& left, std::string_view symbol, const Value& right) {
  if (symbol == "==") return are_equal(rendering, left, right);
  if (symbol == "!=") return !are_equal(rendering, left, right);
  const int order = order_of(rendering, left, symbol, right);
  if (order == 2) return false;
  if (symbol == "<") return order < 0;
  if (symbol == "<=") return order <= 0;
  if (symbol == ">") return order > 0;
  return order >= 0;
}

bool contains_item(Rendering& rendering, const Value& container, const Value& item) {
  if (const std::string* text = container.text()) {
    rendering.check_defined(item);
    if (item.text() == nullptr) {
      rendering.refuse(fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    rendering.spend_text(text->size());
    return text->find(*item.text()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    check_hashable(rendering, item);
    return find_entry(rendering, *dict, item) != nullptr;
  }
  if (const Values* items = container.items()) {
    for (const Value& each : *items) {
      if (are_equal(rendering, each, item)) return true;
    }
    return false;
  }
  for (const Value& each : items_of(rendering, container)) {
    if (are_equal(rendering, each, item)) return true;
  }
  return false;
}

const Value* find_entry(Rendering& rendering, const Dict& dict, const Value& key) {
  if (const std::string* text = key.text()) {  // nearly always
    rendering.spend(1 + dict.entries.size() / 8);
    return dict.find(*text);
  }
  for (const auto& [known, value] : dict.entries) {
    if (are_equal(rendering, known, key)) return &value;
  }
  return nullptr;
}

void set_entry(Rendering& rendering, std::vector<std::pair<Value, Value>>& entries, const Value& key,
               const Value& value) {
  for (auto& [known, old] : entries) {
    if (!are_equal(rendering, known, key)) continue;
    old = value;
    return;
  }
  entries.emplace_back(key, value);
}

void check_hashable(Rendering& rendering, const Value& key) {
  if (key.list() != nullptr || key.dict() != nullptr) {
    rendering.refuse(fmt::format("unhashable type: '{}'", key.type_name()));
  }
  if (key.tuple() == nullptr) return;
  for (const Value& item : key.tuple()->items) check_hashable(rendering, item);
}

}  // namespace tessera::internal::jinja
