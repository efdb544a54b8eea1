// The operators of expressions, with Python's meaning.
#pragma once

#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

enum class Operator {
  kOr,
  kAnd,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
  kAdd,
  kSubtract,
  kConcatenate,
  kMultiply,
  kDivide,
  kFloorDivide,
  kRemainder,
};

struct OperatorSymbol {
  std::string_view symbol;
  Operator operation;
  int level;  // how strong it binds
};
inline constexpr int kComparisonLevel = 3, kHighestLevel = 6;
inline constexpr OperatorSymbol kOperatorSymbols[] = {
    {"or", Operator::kOr, 1},          {"and", Operator::kAnd, 2},         {"==", Operator::kEqual, 3},
    {"!=", Operator::kNotEqual, 3},    {"<", Operator::kLess, 3},          {"<=", Operator::kLessEqual, 3},
    {">", Operator::kGreater, 3},      {">=", Operator::kGreaterEqual, 3}, {"in", Operator::kIn, 3},
    {"not in", Operator::kNotIn, 3},   {"+", Operator::kAdd, 4},           {"-", Operator::kSubtract, 4},
    {"~", Operator::kConcatenate, 5},  {"*", Operator::kMultiply, 6},      {"/", Operator::kDivide, 6},
    {"//", Operator::kFloorDivide, 6}, {"%", Operator::kRemainder, 6},
};

// All but `or` and `and`, which may leave their right side alone.
Value calculate(Rendering& rendering, Operator operation, const Value& left, const Value& right);
Value negative(Rendering& rendering, const Value& value);  // -value

bool truth_of(const Value& value);
bool are_equal(Rendering& rendering, const Value& left, const Value& right);
// Less than zero, zero, more; 2 where one is not a number. Refuses what Python cannot order.
int order_of(Rendering& rendering, const Value& left, const Value& right);
bool contains(Rendering& rendering, const Value& container, const Value& item);  // item in container

}  // namespace tessera::internal::jinja
