// The values of expressions.
#include <fmt/format.h>

#include "core/text.h"
#include "data/templates/evaluator.h"
#include "data/templates/functions.h"
#include "data/templates/python.h"

namespace tessera::internal::jinja {

Value Evaluator::evaluate(const Expression& expression, const ScopePtr& scope) {
  const PlaceGuard guard(rendering_, expression.offset);
  return value_of(expression, scope);
}

Value Evaluator::value_of(const Expression& expression, const ScopePtr& scope) {
  using Kind = Expression::Kind;
  const auto part = [&](std::size_t index) { return evaluate(*expression.parts[index], scope); };
  switch (expression.kind) {
    case Kind::kConstant:
      return expression.value;
    case Kind::kName:
      return value_of_name(expression.name, scope);
    case Kind::kList:
    case Kind::kTuple:
      return rendering_.list(arguments_of(expression, scope).positional, expression.kind == Kind::kTuple);
    case Kind::kDict:
      return value_of_dict(expression, scope);
    case Kind::kOperation:
      return value_of_operation(expression, scope);
    case Kind::kNot:
      return Value(!truth_of(part(0)));
    case Kind::kNegative:
      return negative(rendering_, part(0));
    case Kind::kConditional:
      if (truth_of(part(0))) return part(1);
      if (expression.parts[2] != nullptr) return part(2);
      return Value::undefined("the condition of this 'if' is false, and it has no 'else'");
    case Kind::kAttribute:
      return attribute_of(rendering_, part(0), expression.name);
    case Kind::kItem: {
      const Value base = part(0);
      return item_of(rendering_, base, part(1));
    }
    case Kind::kSlice:
      return value_of_slice(expression, scope);
    case Kind::kCall:
      return value_of_call(expression, scope);
    case Kind::kFilter:
    case Kind::kTest: {
      const Value value = part(0);
      const bool is_filter = expression.kind == Kind::kFilter;
      const Function& function =
          is_filter ? filter_of(rendering_, expression.name) : test_of(rendering_, expression.name);
      return call_function(rendering_, function, value, arguments_of(expression, scope));
    }
  }
  return {};
}

Value Evaluator::value_of_name(const std::string& name, const ScopePtr& scope) {
  std::size_t num_looked_at = 0;
  const Value* const value = scope->find(name, num_looked_at);
  rendering_.spend(num_looked_at / 8);
  if (value != nullptr) return *value;
  if (const Function* global = find_function(globals(), name)) return rendering_.make<BoundFunction>(*global, Value());
  for (const char* unsupported : {"cycler", "dict", "joiner", "lipsum"}) {
    if (name == unsupported) rendering_.refuse(fmt::format("{} is not supported", name));
  }
  return Value::undefined(fmt::format("'{}' is undefined", printable(name, 60)));
}

Value Evaluator::value_of_dict(const Expression& dict, const ScopePtr& scope) {
  Entries entries;
  for (std::size_t i = 0; i < dict.parts.size(); i += 2) {
    const Value key = evaluate(*dict.parts[i], scope);
    if (key.text() == nullptr && !key.is_integer()) {
      rendering_.refuse(fmt::format("a key of type '{}' is not supported", key.type_name()));
    }
    rendering_.spend(1 + entries.size());
    for (const auto& [known, value] : entries) {
      if (are_equal(rendering_, known, key)) rendering_.refuse("a key that appears twice is not supported");
    }
    entries.emplace_back(key, evaluate(*dict.parts[i + 1], scope));
  }
  return rendering_.dict(std::move(entries));
}

Value Evaluator::value_of_operation(const Expression& operation, const ScopePtr& scope) {
  Value left = evaluate(*operation.parts[0], scope);
  const bool is_and = operation.name == "and";
  if (is_and || operation.name == "or") {
    return truth_of(left) == is_and ? evaluate(*operation.parts[1], scope) : left;
  }
  return calculate(rendering_, operation.name, left, evaluate(*operation.parts[1], scope));
}

Value Evaluator::value_of_slice(const Expression& slice, const ScopePtr& scope) {
  Value parts[4];
  for (std::size_t i = 0; i < 4; ++i) {
    if (slice.parts[i] != nullptr) parts[i] = evaluate(*slice.parts[i], scope);
  }
  return slice_of(rendering_, parts[0], parts[1], parts[2], parts[3]);
}

// Methods are called without making a value of them first.
Value Evaluator::value_of_call(const Expression& expression, const ScopePtr& scope) {
  const Expression& callee = *expression.parts[0];
  if (callee.kind == Expression::Kind::kAttribute) {
    const Value base = evaluate(*callee.parts[0], scope);
    if (const Function* method = find_method(rendering_, base, callee.name)) {
      return call_function(rendering_, *method, base, arguments_of(expression, scope));
    }
    const Value function = attribute_of(rendering_, base, callee.name);
    return call(rendering_, function, arguments_of(expression, scope));
  }
  const Value function = evaluate(callee, scope);
  return call(rendering_, function, arguments_of(expression, scope));
}

// All parts but the first, which is what they are given to; of lists and tuples all parts.
Arguments Evaluator::arguments_of(const Expression& expression, const ScopePtr& scope) {
  const bool is_list = expression.kind == Expression::Kind::kList || expression.kind == Expression::Kind::kTuple;
  const std::size_t first_named = expression.parts.size() - expression.keywords.size();
  Arguments arguments;
  for (std::size_t i = is_list ? 0 : 1; i < expression.parts.size(); ++i) {
    Value value = evaluate(*expression.parts[i], scope);
    if (i < first_named) {
      arguments.positional.push_back(std::move(value));
    } else {
      arguments.named.emplace_back(expression.keywords[i - first_named], std::move(value));
    }
  }
  return arguments;
}

}  // namespace tessera::internal::jinja
