#include <fmt/format.h>

#include "core/text.h"
#include "data/templates/attributes.h"
#include "data/templates/compare.h"
#include "data/templates/evaluator.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"

namespace tessera::internal::jinja {

Value Evaluator::evaluate(const Expression& expression, const ScopePtr& scope) {
  const PlaceGuard guard(rendering_, expression.offset);
  return std::visit([&](const auto& form) { return visit(form, scope); }, expression.form);
}

bool Evaluator::truth(const Expression& expression, const ScopePtr& scope) {
  return truth_of(rendering_, evaluate(expression, scope));
}

Value Evaluator::visit(const Constant& form, const ScopePtr&) {
  return form.value;
}

Value Evaluator::visit(const Variable& form, const ScopePtr& scope) {
  std::size_t num_looked_at = 0;
  const Value* const value = scope->find(form.name, num_looked_at);
  rendering_.spend(num_looked_at / 8);
  if (value != nullptr) return *value;
  if (const GlobalFunction* global = find_global(form.name)) {
    return rendering_.make<Function>(global->name, global->body);
  }
  return Value::undefined(fmt::format("'{}' is undefined", printable(form.name, 60)));
}

Value Evaluator::visit(const ItemList& form, const ScopePtr& scope) {
  Values items;
  for (const ExpressionPtr& item : form.items) items.push_back(evaluate(*item, scope));
  return form.is_tuple ? rendering_.tuple(std::move(items)) : rendering_.list(std::move(items));
}

Value Evaluator::visit(const DictLiteral& form, const ScopePtr& scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_form, value_form] : form.entries) {
    const Value key = evaluate(*key_form, scope);
    check_hashable(rendering_, key);
    const Value value = evaluate(*value_form, scope);
    set_entry(rendering_, entries, key, value);
  }
  return rendering_.dict(std::move(entries));
}

Value Evaluator::visit(const Concatenation& form, const ScopePtr& scope) {
  std::string text;
  for (const ExpressionPtr& part : form.parts) append_str(rendering_, text, evaluate(*part, scope));
  return rendering_.text(std::move(text));
}

Value Evaluator::visit(const Arithmetic& form, const ScopePtr& scope) {
  const Value left = evaluate(*form.left, scope);
  const Value right = evaluate(*form.right, scope);
  return calculate(rendering_, form.operation, left, right);
}

Value Evaluator::visit(const Sign& form, const ScopePtr& scope) {
  const Value operand = evaluate(*form.operand, scope);
  return form.is_negative ? negative(rendering_, operand) : positive(rendering_, operand);
}

Value Evaluator::visit(const Negation& form, const ScopePtr& scope) {
  return Value(!truth(*form.operand, scope));
}

Value Evaluator::visit(const AndOr& form, const ScopePtr& scope) {
  Value left = evaluate(*form.left, scope);
  return truth_of(rendering_, left) == form.is_and ? evaluate(*form.right, scope) : left;
}

Value Evaluator::visit(const Comparison& form, const ScopePtr& scope) {
  Value left = evaluate(*form.first, scope);
  for (const Comparison::Link& link : form.links) {
    Value right = evaluate(*link.right, scope);
    const bool holds = link.symbol == "in"       ? contains_item(rendering_, right, left)
                       : link.symbol == "not in" ? !contains_item(rendering_, right, left)
                                                 : compare(rendering_, left, link.symbol, right);
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Evaluator::visit(const Conditional& form, const ScopePtr& scope) {
  if (truth(*form.test, scope)) return evaluate(*form.chosen, scope);
  if (form.otherwise != nullptr) return evaluate(*form.otherwise, scope);
  return Value::undefined("the condition of this 'if' is false, and it has no 'else'");
}

Value Evaluator::visit(const AttributeAccess& form, const ScopePtr& scope) {
  return attribute_of(rendering_, evaluate(*form.base, scope), form.name);
}

Value Evaluator::visit(const ItemAccess& form, const ScopePtr& scope) {
  const Value base = evaluate(*form.base, scope);
  return item_of(rendering_, base, evaluate(*form.key, scope));
}

Value Evaluator::visit(const SliceAccess& form, const ScopePtr& scope) {
  const Value base = evaluate(*form.base, scope);
  const auto bound = [&](const ExpressionPtr& expression) {
    return expression == nullptr ? Value() : evaluate(*expression, scope);
  };
  const Value start = bound(form.start), stop = bound(form.stop), step = bound(form.step);
  rendering_.check_defined(base);
  auto part = find_slice(rendering_, base, start, stop, step);
  return part ? *std::move(part) : Value::undefined(fmt::format("'{} object' cannot be sliced", base.type_name()));
}

Arguments Evaluator::arguments_of(const CallArguments& arguments, const ScopePtr& scope) {
  Arguments values;
  for (const ExpressionPtr& value : arguments.positional) values.positional.push_back(evaluate(*value, scope));
  if (arguments.more_positional != nullptr) {
    for (Value& value : items_of(rendering_, evaluate(*arguments.more_positional, scope))) {
      values.positional.push_back(std::move(value));
    }
  }
  const auto add_named = [&](const std::string& name, Value value) {
    for (const auto& [known, old] : values.named) {
      if (known == name) rendering_.refuse(fmt::format("got two values for '{}'", printable(name, 60)));
    }
    rendering_.spend(1 + values.named.size() / 8);
    values.named.emplace_back(name, std::move(value));
  };
  for (const auto& [name, value] : arguments.named) add_named(name, evaluate(*value, scope));
  if (arguments.more_named == nullptr) return values;
  const Value more = evaluate(*arguments.more_named, scope);
  if (more.dict() == nullptr) rendering_.refuse("argument after ** must be a mapping");
  for (const auto& [name, value] : more.dict()->entries) {
    if (name.text() == nullptr) rendering_.refuse("keywords must be strings");
    add_named(*name.text(), value);
  }
  return values;
}

// Methods and global functions are called without making a value of them first.
Value Evaluator::visit(const CallExpression& form, const ScopePtr& scope) {
  return call_function(form, {}, scope);
}

// `given`: named arguments that come before those of the call, such as caller.
Value Evaluator::call_function(const CallExpression& form, Arguments given, const ScopePtr& scope) {
  const auto all_arguments = [&] {
    Arguments arguments = arguments_of(form.arguments, scope);
    for (auto& named : given.named) arguments.named.push_back(std::move(named));
    return arguments;
  };
  if (const auto* access = std::get_if<AttributeAccess>(&form.function->form)) {
    const Value base = evaluate(*access->base, scope);
    if (const Method::Body method = find_method(base, access->name)) {
      return call_method(rendering_, method, access->name, base, all_arguments());
    }
    const Value function = attribute_of(rendering_, base, access->name);
    return call(rendering_, function, all_arguments());
  }
  if (const auto* variable = std::get_if<Variable>(&form.function->form)) {
    std::size_t num_looked_at = 0;
    const GlobalFunction* const global = find_global(variable->name);
    if (global != nullptr && scope->find(variable->name, num_looked_at) == nullptr) {
      return global->body(rendering_, all_arguments());
    }
  }
  const Value function = evaluate(*form.function, scope);
  return call(rendering_, function, all_arguments());
}

Value Evaluator::visit(const FilterUse& form, const ScopePtr& scope) {
  return apply_filter(form, form.base == nullptr ? *block_value_ : evaluate(*form.base, scope), scope);
}

Value Evaluator::apply_filter(const FilterUse& use, const Value& value, const ScopePtr& scope) {
  if (use.filter == nullptr) rendering_.refuse(unknown_filter(use.name));
  return use.filter(rendering_, value, arguments_of(use.arguments, scope));
}

// The filters of a block, of which the first has no base.
Value Evaluator::apply_chain(const Expression& filters, const Value& value, const ScopePtr& scope) {
  const Value* const outer = std::exchange(block_value_, &value);
  Value result = evaluate(filters, scope);
  block_value_ = outer;
  return result;
}

Value Evaluator::visit(const TestUse& form, const ScopePtr& scope) {
  const Value value = evaluate(*form.base, scope);
  if (form.test == nullptr) rendering_.refuse(unknown_test(form.name));
  return Value(form.test(rendering_, value, arguments_of(form.arguments, scope)));
}

}  // namespace tessera::internal::jinja
