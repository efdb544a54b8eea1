// How many levels of expressions are within a form.
#include <algorithm>

#include "data/templates/syntax.h"

namespace tessera::internal::jinja {
namespace {

std::size_t height_of(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->height;
}
std::size_t height_of(const std::vector<ExpressionPtr>& expressions) {
  std::size_t height = 0;
  for (const ExpressionPtr& expression : expressions) height = std::max(height, height_of(expression));
  return height;
}
std::size_t height_of(const CallArguments& arguments) {
  std::size_t height = std::max(
      {height_of(arguments.positional), height_of(arguments.more_positional), height_of(arguments.more_named)});
  for (const auto& [name, value] : arguments.named) height = std::max(height, height_of(value));
  return height;
}

std::size_t inner_height(const Constant&) {
  return 0;
}
std::size_t inner_height(const Variable&) {
  return 0;
}
std::size_t inner_height(const ItemList& form) {
  return height_of(form.items);
}
std::size_t inner_height(const DictLiteral& form) {
  std::size_t height = 0;
  for (const auto& [key, value] : form.entries) height = std::max({height, height_of(key), height_of(value)});
  return height;
}
std::size_t inner_height(const Concatenation& form) {
  return height_of(form.parts);
}
std::size_t inner_height(const Sign& form) {
  return height_of(form.operand);
}
std::size_t inner_height(const Negation& form) {
  return height_of(form.operand);
}
std::size_t inner_height(const Comparison& form) {
  std::size_t height = height_of(form.first);
  for (const auto& link : form.links) height = std::max(height, height_of(link.right));
  return height;
}
std::size_t inner_height(const Conditional& form) {
  return std::max({height_of(form.test), height_of(form.chosen), height_of(form.otherwise)});
}
std::size_t inner_height(const AttributeAccess& form) {
  return height_of(form.base);
}
std::size_t inner_height(const ItemAccess& form) {
  return std::max(height_of(form.base), height_of(form.key));
}
std::size_t inner_height(const SliceAccess& form) {
  return std::max({height_of(form.base), height_of(form.start), height_of(form.stop), height_of(form.step)});
}
std::size_t inner_height(const CallExpression& form) {
  return std::max(height_of(form.function), height_of(form.arguments));
}
std::size_t inner_height(const auto& form) {
  if constexpr (requires { form.left; }) {
    return std::max(height_of(form.left), height_of(form.right));
  } else {  // filters and tests
    return std::max(height_of(form.base), height_of(form.arguments));
  }
}

}  // namespace

std::size_t height_within(const ExpressionForm& form) {
  return std::visit([](const auto& each) { return inner_height(each); }, form);
}

}  // namespace tessera::internal::jinja
