// +, -, *, /, //, % and ** of values, as in Python.
#pragma once

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

enum class Operation { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kRemainder, kPower };

Value calculate(Rendering& rendering, Operation operation, const Value& left, const Value& right);
Value negative(Rendering& rendering, const Value& value);  // -value
Value positive(Rendering& rendering, const Value& value);  // +value

}  // namespace tessera::internal::jinja
