#include "data/templates/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "data/templates/python_text.h"

namespace tessera::internal::jinja {
namespace {

std::string_view symbol_of(Operator operation) {
  return std::find_if(std::begin(kOperatorSymbols), std::end(kOperatorSymbols),
                      [&](const OperatorSymbol& each) { return each.operation == operation; })
      ->symbol;
}

// Nothing: the result needs more than 64 bits.
std::optional<std::int64_t> integer_result(Operator operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  if (operation == Operator::kAdd) {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (operation == Operator::kSubtract) {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (operation == Operator::kMultiply) {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (a == std::numeric_limits<std::int64_t>::min() && b == -1) {
    overflows = operation == Operator::kFloorDivide;
  } else {  // rounded down, where C++ rounds to zero
    const std::int64_t rest = a % b;
    const bool is_between = rest != 0 && (rest < 0) != (b < 0);
    result = operation == Operator::kRemainder ? rest + (is_between ? b : 0) : a / b - (is_between ? 1 : 0);
  }
  return overflows ? std::nullopt : std::optional(result);
}

[[noreturn]] void refuse_types(Rendering& rendering, Operator operation, const Value& left, const Value& right) {
  rendering.check_defined(left);
  rendering.check_defined(right);
  if (operation == Operator::kAdd && left.text() != nullptr) {
    rendering.refuse(fmt::format("can only concatenate str (not \"{}\") to str", right.type_name()));
  }
  if (operation == Operator::kRemainder && left.text() != nullptr) {
    rendering.refuse("formatting texts by % is not supported: join them by ~");
  }
  rendering.refuse(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol_of(operation),
                               left.type_name(), right.type_name()));
}

Value calculate_numbers(Rendering& rendering, Operator operation, const Value& left, const Value& right) {
  const bool divides =
      operation == Operator::kDivide || operation == Operator::kFloorDivide || operation == Operator::kRemainder;
  const double a = *left.number(), b = *right.number();
  if (divides && b == 0) rendering.refuse("division by zero");
  if (operation == Operator::kDivide) return Value(a / b);
  if (left.integer() && right.integer()) {
    const auto result = integer_result(operation, *left.integer(), *right.integer());
    if (!result) rendering.refuse(kBeyond64Bits);
    return Value(*result);
  }
  if (operation == Operator::kAdd) return Value(a + b);
  if (operation == Operator::kSubtract) return Value(a - b);
  if (operation == Operator::kMultiply) return Value(a * b);
  rendering.refuse(fmt::format("{} of a float is not supported", symbol_of(operation)));
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
  if (a == nullptr || b == nullptr || a->is_tuple != b->is_tuple) refuse_types(rendering, Operator::kAdd, left, right);
  rendering.spend(a->items.size() + b->items.size());
  Values all = a->items;
  all.insert(all.end(), b->items.begin(), b->items.end());
  return rendering.list(std::move(all), a->is_tuple);
}

// A text or a list, so many times.
Value repeated(Rendering& rendering, const Value& value, std::int64_t times) {
  const std::size_t count = times > 0 ? static_cast<std::size_t>(times) : 0;
  if (const std::string* text = value.text()) {
    rendering.spend_repeated(text->size(), count);
    std::string all;
    for (std::size_t i = 0; i < count && !text->empty(); ++i) all += *text;
    return Value(std::move(all), value.is_markup());
  }
  const Values& items = value.list()->items;
  rendering.spend_repeated(items.size() * 64, count);  // a step per item
  Values all;
  for (std::size_t i = 0; i < count && !items.empty(); ++i) all.insert(all.end(), items.begin(), items.end());
  return rendering.list(std::move(all), value.list()->is_tuple);
}

Value multiply(Rendering& rendering, const Value& left, const Value& right) {
  const auto repeats = [](const Value& value) { return value.text() != nullptr || value.list() != nullptr; };
  if (repeats(left) && right.integer()) return repeated(rendering, left, *right.integer());
  if (repeats(right) && left.integer()) return repeated(rendering, right, *left.integer());
  refuse_types(rendering, Operator::kMultiply, left, right);
}

bool compares(Rendering& rendering, Operator operation, const Value& left, const Value& right) {
  const int order = order_of(rendering, left, right);
  if (order == 2) return false;
  if (operation == Operator::kLess) return order < 0;
  if (operation == Operator::kLessEqual) return order <= 0;
  return operation == Operator::kGreater ? order > 0 : order >= 0;
}

}  // namespace

Value calculate(Rendering& rendering, Operator operation, const Value& left, const Value& right) {
  switch (operation) {
    case Operator::kEqual:
      return Value(are_equal(rendering, left, right));
    case Operator::kNotEqual:
      return Value(!are_equal(rendering, left, right));
    case Operator::kIn:
      return Value(contains(rendering, right, left));
    case Operator::kNotIn:
      return Value(!contains(rendering, right, left));
    case Operator::kLess:
    case Operator::kLessEqual:
    case Operator::kGreater:
    case Operator::kGreaterEqual:
      return Value(compares(rendering, operation, left, right));
    case Operator::kConcatenate:
      return rendering.text(str_of(rendering, left) + str_of(rendering, right));
    default:
      break;
  }
  if (left.is_number() && right.is_number()) return calculate_numbers(rendering, operation, left, right);
  if (operation == Operator::kAdd) return add(rendering, left, right);
  if (operation == Operator::kMultiply) return multiply(rendering, left, right);
  refuse_types(rendering, operation, left, right);
}

Value negative(Rendering& rendering, const Value& value) {
  if (value.is_real()) return Value(-*value.number());
  if (value.integer()) return calculate_numbers(rendering, Operator::kSubtract, Value(std::int64_t{0}), value);
  rendering.check_defined(value);
  rendering.refuse(fmt::format("bad operand type for unary -: '{}'", value.type_name()));
}

}  // namespace tessera::internal::jinja
