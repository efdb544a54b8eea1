// Arithmetic, truth, equality, order and membership.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "data/templates/python.h"

namespace tessera::internal::jinja {
namespace {

// Nothing: the result needs more than 64 bits.
std::optional<std::int64_t> integer_result(std::string_view symbol, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  if (symbol == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (symbol == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (symbol == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (a == std::numeric_limits<std::int64_t>::min() && b == -1) {
    overflows = symbol == "//";
  } else {  // rounded down, where C++ rounds to zero
    const std::int64_t rest = a % b;
    const bool is_between = rest != 0 && (rest < 0) != (b < 0);
    result = symbol == "%" ? rest + (is_between ? b : 0) : a / b - (is_between ? 1 : 0);
  }
  return overflows ? std::nullopt : std::optional(result);
}

[[noreturn]] void refuse_types(Rendering& rendering, std::string_view symbol, const Value& left, const Value& right) {
  rendering.check_defined(left);
  rendering.check_defined(right);
  if (symbol == "+" && left.text() != nullptr) {
    rendering.refuse(fmt::format("can only concatenate str (not \"{}\") to str", right.type_name()));
  }
  if (symbol == "%" && left.text() != nullptr) {
    rendering.refuse("formatting texts by % is not supported: join them by ~");
  }
  rendering.refuse(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol, left.type_name(), right.type_name()));
}

Value calculate_numbers(Rendering& rendering, std::string_view symbol, const Value& left, const Value& right) {
  const bool divides = symbol == "/" || symbol == "//" || symbol == "%";
  const double a = *left.number(), b = *right.number();
  if (divides && b == 0) rendering.refuse("division by zero");
  if (symbol == "/") return Value(a / b);
  if (left.integer() && right.integer()) {
    const auto result = integer_result(symbol, *left.integer(), *right.integer());
    if (!result) rendering.refuse(kBeyond64Bits);
    return Value(*result);
  }
  if (symbol == "+") return Value(a + b);
  if (symbol == "-") return Value(a - b);
  if (symbol == "*") return Value(a * b);
  rendering.refuse(fmt::format("{} of a float is not supported", symbol));
}

std::string escape_html(Rendering& rendering, const Value& value) {
  if (value.is_markup()) return *value.text();
  rendering.spend_repeated(value.text()->size(), 5);
  std::string escaped;
  for (const char c : *value.text()) {
    static constexpr std::string_view kSpecial = "&<>'\"";
    static constexpr std::string_view kEscapes[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    if (const std::size_t found = kSpecial.find(c); found != std::string_view::npos) {
      escaped += kEscapes[found];
    } else {
      escaped += c;
    }
  }
  return escaped;
}

Value add(Rendering& rendering, const Value& left, const Value& right) {
  if (left.text() != nullptr && right.text() != nullptr) {
    rendering.spend_text(left.text()->size() + right.text()->size());
    if (!left.is_markup() && !right.is_markup()) return Value(*left.text() + *right.text());
    return Value(escape_html(rendering, left) + escape_html(rendering, right), /*is_markup=*/true);
  }
  const List *a = left.list(), *b = right.list();
  if (a == nullptr || b == nullptr || a->is_tuple != b->is_tuple) refuse_types(rendering, "+", left, right);
  rendering.spend(a->items.size() + b->items.size());
  Values all = a->items;
  all.insert(all.end(), b->items.begin(), b->items.end());
  return rendering.list(std::move(all), a->is_tuple);
}

Value multiply(Rendering& rendering, const Value& left, const Value& right) {
  const Value &text = left.text() != nullptr ? left : right, &times = left.text() != nullptr ? right : left;
  if (text.text() == nullptr || !times.integer()) refuse_types(rendering, "*", left, right);
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(*times.integer(), 0));
  rendering.spend_repeated(text.text()->size(), count);
  std::string all;
  for (std::size_t i = 0; i < count && !text.text()->empty(); ++i) all += *text.text();
  return Value(std::move(all), text.is_markup());
}

bool compares(Rendering& rendering, std::string_view symbol, const Value& left, const Value& right) {
  const int order = order_of(rendering, left, right);
  if (order == 2) return false;
  if (symbol == "<") return order < 0;
  if (symbol == "<=") return order <= 0;
  return symbol == ">" ? order > 0 : order >= 0;
}

int order(const auto& a, const auto& b) {
  return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

int order_of_numbers(const Value& left, const Value& right) {
  const bool are_whole = left.integer() && right.integer();
  return are_whole ? order(*left.integer(), *right.integer()) : order(*left.number(), *right.number());
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

Value calculate(Rendering& rendering, std::string_view symbol, const Value& left, const Value& right) {
  if (symbol == "==") return Value(are_equal(rendering, left, right));
  if (symbol == "!=") return Value(!are_equal(rendering, left, right));
  if (symbol == "in") return Value(contains(rendering, right, left));
  if (symbol == "not in") return Value(!contains(rendering, right, left));
  if (symbol[0] == '<' || symbol[0] == '>') return Value(compares(rendering, symbol, left, right));
  if (symbol == "~") return rendering.text(str_of(rendering, left) + str_of(rendering, right));
  if (left.is_number() && right.is_number()) return calculate_numbers(rendering, symbol, left, right);
  if (symbol == "+") return add(rendering, left, right);
  if (symbol == "*") return multiply(rendering, left, right);
  refuse_types(rendering, symbol, left, right);
}

Value negative(Rendering& rendering, const Value& value) {
  if (value.is_real()) return Value(-*value.number());
  if (value.integer()) return calculate_numbers(rendering, "-", Value(std::int64_t{0}), value);
  rendering.check_defined(value);
  rendering.refuse(fmt::format("bad operand type for unary -: '{}'", value.type_name()));
}

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
    return order(*left.text(), *right.text());
  }
  rendering.check_defined(left);
  rendering.check_defined(right);
  rendering.refuse(fmt::format("comparing '{}' with '{}' is not supported", left.type_name(), right.type_name()));
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
