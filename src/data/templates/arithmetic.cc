#include "data/templates/arithmetic.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "data/templates/formats.h"
#include "data/templates/text_parts.h"

namespace tessera::internal::jinja {
namespace {

constexpr const char* kBeyond64Bits = "whole numbers beyond 64 bits are not supported";

const char* symbol_of(Operation operation) {
  static constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSymbols[static_cast<std::size_t>(operation)];
}

std::int64_t floor_divide(Rendering& rendering, std::int64_t a, std::int64_t b) {
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) rendering.refuse(kBeyond64Bits);
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value integer_power(Rendering& rendering, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) rendering.refuse("0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result)) rendering.refuse(kBeyond64Bits);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) rendering.refuse(kBeyond64Bits);
  }
  return Value(result);
}

Value calculate_integers(Rendering& rendering, Operation operation, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  const bool divides =
      operation == Operation::kDivide || operation == Operation::kFloorDivide || operation == Operation::kRemainder;
  if (divides && b == 0) rendering.refuse("division by zero");
  switch (operation) {
    case Operation::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Operation::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Operation::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Operation::kDivide:
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operation::kFloorDivide:
      return Value(floor_divide(rendering, a, b));
    case Operation::kRemainder:
      result = b == -1 ? 0 : a % b;
      if (result != 0 && (result < 0) != (b < 0)) result += b;
      break;
    case Operation::kPower:
      return integer_power(rendering, a, b);
  }
  if (overflows) rendering.refuse(kBeyond64Bits);
  return Value(result);
}

double remainder_of(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value real_power(Rendering& rendering, double a, double b) {
  if (a == 0 && b < 0) rendering.refuse("0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
    rendering.refuse("complex numbers are not supported");
  }
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) rendering.refuse("the result of ** is too large");
  return Value(result);
}

Value calculate_reals(Rendering& rendering, Operation operation, double a, double b) {
  const bool divides =
      operation == Operation::kDivide || operation == Operation::kFloorDivide || operation == Operation::kRemainder;
  if (divides && b == 0) rendering.refuse("float division by zero");
  switch (operation) {
    case Operation::kAdd:
      return Value(a + b);
    case Operation::kSubtract:
      return Value(a - b);
    case Operation::kMultiply:
      return Value(a * b);
    case Operation::kDivide:
      return Value(a / b);
    case Operation::kFloorDivide:
      return Value(std::floor((a - remainder_of(a, b)) / b + 0.5));  // a whole number but for rounding
    case Operation::kRemainder:
      return Value(remainder_of(a, b));
    case Operation::kPower:
      return real_power(rendering, a, b);
  }
  return {};
}

Value repeated(Rendering& rendering, const Value& value, std::int64_t times) {
  const std::size_t count = times > 0 ? static_cast<std::size_t>(times) : 0;
  if (const std::string* text = value.text()) {
    rendering.spend_repeated(text->size(), count);
    std::string all;
    if (!text->empty()) {
      all.reserve(text->size() * count);
      for (std::size_t i = 0; i < count; ++i) all += *text;
    }
    return rendering.text_like(value, std::move(all));
  }
  const Values& items = *value.items();
  rendering.spend_repeated(items.size() * 64, count);  // a step per item
  Values all;
  if (!items.empty()) {
    for (std::size_t i = 0; i < count; ++i) all.insert(all.end(), items.begin(), items.end());
  }
  return value.list() != nullptr ? rendering.list(std::move(all)) : rendering.tuple(std::move(all));
}

// Sums of texts and lists, products of these with whole numbers, "%s" % values.
std::optional<Value> combine(Rendering& rendering, Operation operation, const Value& left, const Value& right) {
  const auto repeats = [](const Value& value) { return value.text() != nullptr || value.items() != nullptr; };
  if (operation == Operation::kAdd) {
    if (left.text() != nullptr && right.text() != nullptr) {
      rendering.spend_text(left.text()->size() + right.text()->size());
      if (left.is_markup() == right.is_markup()) return rendering.text_like(left, *left.text() + *right.text());
      const auto escaped = [&](const Value& part) {
        return part.is_markup() ? *part.text() : escape_html(rendering, *part.text());
      };
      return Value::markup(escaped(left) + escaped(right));
    }
    const bool are_alike =
        (left.list() != nullptr && right.list() != nullptr) || (left.tuple() != nullptr && right.tuple() != nullptr);
    if (!are_alike) return std::nullopt;
    rendering.spend(left.items()->size() + right.items()->size());
    Values all = *left.items();
    all.insert(all.end(), right.items()->begin(), right.items()->end());
    return left.list() != nullptr ? rendering.list(std::move(all)) : rendering.tuple(std::move(all));
  }
  if (operation == Operation::kMultiply) {
    if (repeats(left) && right.integer()) return repeated(rendering, left, *right.integer());
    if (repeats(right) && left.integer()) return repeated(rendering, right, *left.integer());
  }
  if (operation == Operation::kRemainder && left.text() != nullptr) {
    return rendering.text_like(
        left, format_percent(rendering, *left.text(), left.is_markup() ? escaped_texts(rendering, right) : right));
  }
  return std::nullopt;
}

}  // namespace

Value calculate(Rendering& rendering, Operation operation, const Value& left, const Value& right) {
  rendering.check_defined(left);
  if (left.text() == nullptr || operation != Operation::kRemainder) rendering.check_defined(right);
  if (left.integer() && right.integer()) {
    return calculate_integers(rendering, operation, *left.integer(), *right.integer());
  }
  if (left.is_number() && right.is_number()) {
    return calculate_reals(rendering, operation, *left.number(), *right.number());
  }
  if (auto combined = combine(rendering, operation, left, right)) return *std::move(combined);
  if (operation == Operation::kAdd && left.text() != nullptr) {
    rendering.refuse(fmt::format("can only concatenate str (not \"{}\") to str", right.type_name()));
  }
  rendering.refuse(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol_of(operation),
                               left.type_name(), right.type_name()));
}

Value negative(Rendering& rendering, const Value& value) {
  if (value.is_real()) return Value(-*value.number());
  if (value.integer()) return calculate_integers(rendering, Operation::kSubtract, 0, *value.integer());
  rendering.check_defined(value);
  rendering.refuse(fmt::format("bad operand type for unary -: '{}'", value.type_name()));
}

Value positive(Rendering& rendering, const Value& value) {
  if (value.is_real()) return value;
  if (value.integer()) return Value(*value.integer());
  rendering.check_defined(value);
  rendering.refuse(fmt::format("bad operand type for unary +: '{}'", value.type_name()));
}

}  // namespace tessera::internal::jinja
