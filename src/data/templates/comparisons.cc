// Truth, equality, order and membership.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/templates/operators.h"
#include "data/templates/sequence.h"

namespace tessera::internal::jinja {
namespace {

// Exact between whole numbers and floats.
int order_of_numbers(const Value& left, const Value& right) {
  const auto exact = [](const Value& value) {
    return value.is_real() ? static_cast<long double>(*value.number()) : static_cast<long double>(*value.integer());
  };
  const long double a = exact(left), b = exact(right);
  if (std::isnan(a) || std::isnan(b)) return 2;
  return a < b ? -1 : a > b ? 1 : 0;
}

bool are_equal_lists(Rendering& rendering, const List& left, const List& right) {
  if (left.items.size() != right.items.size() || left.is_tuple != right.is_tuple) return false;
  for (std::size_t i = 0; i < left.items.size(); ++i) {
    if (!are_equal(rendering, left.items[i], right.items[i])) return false;
  }
  return true;
}

bool are_equal_dicts(Rendering& rendering, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, value] : left.entries) {
    rendering.spend(1 + right.entries.size() / 8);
    const Value* const other = right.find(key);
    if (other == nullptr || !are_equal(rendering, value, *other)) return false;
  }
  return true;
}

}  // namespace

bool truth_of(const Value& value) {
  if (value.is_none() || value.is_undefined()) return false;
  if (const auto number = value.number()) return *number != 0;
  if (const std::string* text = value.text()) return !text->empty();
  if (const List* list = value.list()) return !list->items.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  const auto* sequence = dynamic_cast<const Sequence*>(value.object());
  return sequence == nullptr || sequence->is_generator() || sequence->length() > 0;
}

bool are_equal(Rendering& rendering, const Value& left, const Value& right) {
  rendering.spend(1);
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right) == 0;
  if (const std::string* text = left.text()) {
    rendering.spend_text(text->size());
    return right.text() != nullptr && *text == *right.text();
  }
  if (left.list() != nullptr && right.list() != nullptr) return are_equal_lists(rendering, *left.list(), *right.list());
  if (left.dict() != nullptr && right.dict() != nullptr) return are_equal_dicts(rendering, *left.dict(), *right.dict());
  if (left.object() != nullptr) return left.object() == right.object();
  return (left.is_none() && right.is_none()) || (left.is_undefined() && right.is_undefined());
}

int order_of(Rendering& rendering, const Value& left, const Value& right) {
  rendering.spend(1);
  if (left.is_number() && right.is_number()) return order_of_numbers(left, right);
  if (left.text() != nullptr && right.text() != nullptr) {  // bytes of UTF-8 are in the order of characters
    rendering.spend_text(std::min(left.text()->size(), right.text()->size()));
    const int order = left.text()->compare(*right.text());
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  const List *a = left.list(), *b = right.list();
  if (a == nullptr || b == nullptr || a->is_tuple != b->is_tuple) {
    rendering.check_defined(left);
    rendering.check_defined(right);
    rendering.refuse(fmt::format("'{}' and '{}' have no order", left.type_name(), right.type_name()));
  }
  for (std::size_t i = 0; i < std::min(a->items.size(), b->items.size()); ++i) {
    if (!are_equal(rendering, a->items[i], b->items[i])) return order_of(rendering, a->items[i], b->items[i]);
  }
  return a->items.size() < b->items.size() ? -1 : a->items.size() > b->items.size() ? 1 : 0;
}

bool contains(Rendering& rendering, const Value& container, const Value& item) {
  if (const std::string* text = container.text()) {
    rendering.check_defined(item);
    if (item.text() == nullptr) {
      rendering.refuse(fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    rendering.spend_text(text->size());
    return text->find(*item.text()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    if (item.list() != nullptr || item.dict() != nullptr) {
      rendering.refuse(fmt::format("a value of type '{}' cannot be a key", item.type_name()));
    }
    rendering.spend(1 + dict->entries.size() / 8);
    return dict->find(item) != nullptr;
  }
  const Values items = items_of(rendering, container);
  return std::any_of(items.begin(), items.end(), [&](const Value& each) { return are_equal(rendering, each, item); });
}

}  // namespace tessera::internal::jinja
