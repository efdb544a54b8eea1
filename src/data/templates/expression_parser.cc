// Expressions, in Jinja2's order of operators: conditions bind least, then or, and, not, comparisons, + -, ~, * / // %,
// **, signs, and filters and tests most.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "data/templates/parser.h"

namespace tessera::internal::jinja {
namespace {

// Levels of expressions within each other, and of a chain such as a + b + c: evaluation recurses through them.
constexpr std::size_t kMaxExpressionHeight = 200;

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

std::size_t height_within(const Constant&) {
  return 0;
}
std::size_t height_within(const Variable&) {
  return 0;
}
std::size_t height_within(const ItemList& form) {
  return height_of(form.items);
}
std::size_t height_within(const DictLiteral& form) {
  std::size_t height = 0;
  for (const auto& [key, value] : form.entries) height = std::max({height, height_of(key), height_of(value)});
  return height;
}
std::size_t height_within(const Concatenation& form) {
  return height_of(form.parts);
}
std::size_t height_within(const Sign& form) {
  return height_of(form.operand);
}
std::size_t height_within(const Negation& form) {
  return height_of(form.operand);
}
std::size_t height_within(const Comparison& form) {
  std::size_t height = height_of(form.first);
  for (const auto& link : form.links) height = std::max(height, height_of(link.right));
  return height;
}
std::size_t height_within(const Conditional& form) {
  return std::max({height_of(form.test), height_of(form.chosen), height_of(form.otherwise)});
}
std::size_t height_within(const AttributeAccess& form) {
  return height_of(form.base);
}
std::size_t height_within(const ItemAccess& form) {
  return std::max(height_of(form.base), height_of(form.key));
}
std::size_t height_within(const SliceAccess& form) {
  return std::max({height_of(form.base), height_of(form.start), height_of(form.stop), height_of(form.step)});
}
std::size_t height_within(const CallExpression& form) {
  return std::max(height_of(form.function), height_of(form.arguments));
}
std::size_t height_within(const auto& form) {
  if constexpr (requires { form.left; }) {
    return std::max(height_of(form.left), height_of(form.right));
  } else {  // filters and tests
    return std::max(height_of(form.base), height_of(form.arguments));
  }
}

}  // namespace

ExpressionPtr Parser::make(Offset offset, decltype(Expression::form) form) const {
  const std::size_t height = 1 + std::visit([](const auto& each) { return height_within(each); }, form);
  if (height > kMaxExpressionHeight) {
    source_.refuse(offset, fmt::format("this expression has more than {} levels", kMaxExpressionHeight));
  }
  return std::make_unique<Expression>(Expression{offset, height, std::move(form)});
}

ExpressionPtr Parser::parse_expression() {
  if (++depth_ > kMaxExpressionHeight) {
    refuse(fmt::format("expressions are nested more than {} levels deep", kMaxExpressionHeight));
  }
  const Offset offset = current().offset;
  const std::size_t num_unknown = unknown_.size();
  ExpressionPtr chosen = parse_or();
  while (skip_if("if")) {
    ExpressionPtr test = parse_or();
    ExpressionPtr otherwise = skip_if("else") ? parse_expression() : nullptr;
    chosen = make(offset, Conditional{std::move(test), std::move(chosen), std::move(otherwise)});
    unknown_.resize(num_unknown);
  }
  --depth_;
  return chosen;
}

ExpressionPtr Parser::parse_or() {
  ExpressionPtr left = parse_and();
  while (current().is_name("or")) {
    const Offset offset = next().offset;
    left = make(offset, AndOr{false, std::move(left), parse_and()});
  }
  return left;
}

ExpressionPtr Parser::parse_and() {
  ExpressionPtr left = parse_not();
  while (current().is_name("and")) {
    const Offset offset = next().offset;
    left = make(offset, AndOr{true, std::move(left), parse_not()});
  }
  return left;
}

ExpressionPtr Parser::parse_not() {
  std::vector<Offset> negations;
  while (current().is_name("not")) negations.push_back(next().offset);
  ExpressionPtr operand = parse_comparison();
  for (; !negations.empty(); negations.pop_back()) operand = make(negations.back(), Negation{std::move(operand)});
  return operand;
}

ExpressionPtr Parser::parse_comparison() {
  static constexpr std::array<std::string_view, 6> kSymbols = {"==", "!=", "<", "<=", ">", ">="};
  const Offset offset = current().offset;
  ExpressionPtr first = parse_sum();
  std::vector<Comparison::Link> links;
  while (true) {
    const bool is_symbol = current().kind == Token::Kind::kOperator &&
                           std::find(kSymbols.begin(), kSymbols.end(), current().text) != kSymbols.end();
    if (is_symbol || current().is_name("in")) {
      std::string symbol = next().text;
      links.push_back({std::move(symbol), parse_sum()});
    } else if (current().is_name("not") && following().is_name("in")) {
      next();
      next();
      links.push_back({"not in", parse_sum()});
    } else {
      break;
    }
  }
  return links.empty() ? std::move(first) : make(offset, Comparison{std::move(first), std::move(links)});
}

ExpressionPtr Parser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (current().is_operator("+") || current().is_operator("-")) {
    const Token symbol = next();
    const Operation operation = symbol.text == "+" ? Operation::kAdd : Operation::kSubtract;
    left = make(symbol.offset, Arithmetic{operation, std::move(left), parse_concatenation()});
  }
  return left;
}

ExpressionPtr Parser::parse_concatenation() {
  const Offset offset = current().offset;
  std::vector<ExpressionPtr> parts;
  parts.push_back(parse_product());
  while (skip_if("~")) parts.push_back(parse_product());
  return parts.size() == 1 ? std::move(parts[0]) : make(offset, Concatenation{std::move(parts)});
}

ExpressionPtr Parser::parse_product() {
  ExpressionPtr left = parse_power();
  while (true) {
    const Token symbol = current();
    const auto operation = symbol.is_operator("*")    ? Operation::kMultiply
                           : symbol.is_operator("/")  ? Operation::kDivide
                           : symbol.is_operator("//") ? Operation::kFloorDivide
                                                      : Operation::kRemainder;
    if (operation == Operation::kRemainder && !symbol.is_operator("%")) return left;
    next();
    left = make(symbol.offset, Arithmetic{operation, std::move(left), parse_power()});
  }
}

ExpressionPtr Parser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (current().is_operator("**")) {
    const Offset offset = next().offset;
    left = make(offset, Arithmetic{Operation::kPower, std::move(left), parse_unary()});
  }
  return left;
}

// Of -x|abs, the filter takes -x; of -x.y, the sign takes x.y.
ExpressionPtr Parser::parse_unary(bool with_filters) {
  std::vector<Token> signs;
  while (current().is_operator("-") || current().is_operator("+")) signs.push_back(next());
  ExpressionPtr value = parse_postfix(parse_primary());
  for (; !signs.empty(); signs.pop_back()) {
    value = make(signs.back().offset, Sign{signs.back().text == "-", std::move(value)});
  }
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr Parser::parse_primary() {
  const Token token = current();
  switch (token.kind) {
    case Token::Kind::kName: {
      next();
      if (token.text == "true" || token.text == "True") return make(token.offset, Constant{Value(true)});
      if (token.text == "false" || token.text == "False") return make(token.offset, Constant{Value(false)});
      if (token.text == "none" || token.text == "None") return make(token.offset, Constant{Value()});
      for (Signature* macro : macros_) {
        macro->uses_caller = macro->uses_caller || token.text == "caller";
        macro->uses_kwargs = macro->uses_kwargs || token.text == "kwargs";
        macro->uses_varargs = macro->uses_varargs || token.text == "varargs";
      }
      return make(token.offset, Variable{token.text});
    }
    case Token::Kind::kText: {
      std::string text;
      while (current().kind == Token::Kind::kText) text += next().text;  // "a" "b" is "ab"
      return make(token.offset, Constant{Value(std::move(text))});
    }
    case Token::Kind::kInteger:
      next();
      return make(token.offset, Constant{Value(token.integer)});
    case Token::Kind::kReal:
      next();
      return make(token.offset, Constant{Value(token.real)});
    default:
      if (token.is_operator("(")) return parse_parentheses();
      if (token.is_operator("[")) return parse_list();
      if (token.is_operator("{")) return parse_dict();
      refuse_found("a value");
  }
}

ExpressionPtr Parser::parse_parentheses() {
  expect("(");
  ExpressionPtr value = parse_tuple(/*with_conditionals=*/true, {}, /*may_be_empty=*/true);
  expect(")");
  return value;
}

ExpressionPtr Parser::parse_list() {
  const Offset offset = expect("[");
  std::vector<ExpressionPtr> items;
  while (!current().is_operator("]")) {
    if (!items.empty()) expect(",");
    if (current().is_operator("]")) break;
    items.push_back(parse_expression());
  }
  expect("]");
  return make(offset, ItemList{std::move(items), false});
}

ExpressionPtr Parser::parse_dict() {
  const Offset offset = expect("{");
  DictLiteral dict;
  while (!current().is_operator("}")) {
    if (!dict.entries.empty()) expect(",");
    if (current().is_operator("}")) break;
    ExpressionPtr key = parse_expression();
    expect(":");
    dict.entries.emplace_back(std::move(key), parse_expression());
  }
  expect("}");
  return make(offset, std::move(dict));
}

bool Parser::is_tuple_end(Names ends) const {
  const Token& token = current();
  if (token.kind == Token::Kind::kPrintEnd || token.kind == Token::Kind::kTagEnd || token.is_operator(")")) return true;
  return token.kind == Token::Kind::kName && std::find(ends.begin(), ends.end(), token.text) != ends.end();
}

// One expression, or several with commas between them.
ExpressionPtr Parser::parse_tuple(bool with_conditionals, Names ends, bool may_be_empty) {
  const Offset offset = current().offset;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect(",");
    if (is_tuple_end(ends)) break;
    items.push_back(with_conditionals ? parse_expression() : parse_or());
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !may_be_empty) refuse_found("an expression");
  return make(offset, ItemList{std::move(items), true});
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr base) {
  while (true) {
    if (current().is_operator(".") || current().is_operator("[")) {
      base = parse_subscript(std::move(base));
    } else if (current().is_operator("(")) {
      const Offset offset = base->offset;
      base = make(offset, CallExpression{std::move(base), parse_arguments()});
    } else {
      return base;
    }
  }
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr base) {
  while (true) {
    if (skip_if("|")) {
      base = parse_filter(std::move(base));
    } else if (current().is_name("is")) {
      base = parse_test(std::move(base));
    } else if (current().is_operator("(")) {
      const Offset offset = base->offset;
      base = make(offset, CallExpression{std::move(base), parse_arguments()});
    } else {
      return base;
    }
  }
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr base) {
  const Token token = next();
  if (token.text == "[") return parse_item(std::move(base));
  if (current().kind == Token::Kind::kName) {
    return make(token.offset, AttributeAccess{std::move(base), next().text});
  }
  if (current().kind != Token::Kind::kInteger) refuse_found("a name or a number");
  const Token index = next();
  return make(token.offset, ItemAccess{std::move(base), make(index.offset, Constant{Value(index.integer)})});
}

// Behind "[": a key, several with commas, or a slice.
ExpressionPtr Parser::parse_item(ExpressionPtr base) {
  const Offset offset = current().offset;
  const auto is_bound_end = [&] { return current().is_operator("]") || current().is_operator(":"); };
  ExpressionPtr first = is_bound_end() ? nullptr : parse_expression();
  if (current().is_operator(":")) {
    SliceAccess slice{std::move(base), std::move(first), nullptr, nullptr};
    next();
    if (!is_bound_end()) slice.stop = parse_expression();
    if (skip_if(":") && !is_bound_end()) slice.step = parse_expression();
    expect("]");
    return make(offset, std::move(slice));
  }
  if (first == nullptr) refuse_found("an index");
  if (current().is_operator(",")) {
    std::vector<ExpressionPtr> keys;
    keys.push_back(std::move(first));
    while (skip_if(",")) keys.push_back(parse_expression());
    first = make(offset, ItemList{std::move(keys), true});
  }
  expect("]");
  return make(offset, ItemAccess{std::move(base), std::move(first)});
}

std::string Parser::parse_dotted_name() {
  std::string name = expect_name();
  while (skip_if(".")) name += "." + expect_name();
  return name;
}

ExpressionPtr Parser::parse_filter(ExpressionPtr base) {
  const Offset offset = current().offset;
  std::string name = parse_dotted_name();
  const Filter filter = find_filter(name);
  if (filter == nullptr && conditional_depth_ == 0) unknown_.emplace_back(offset, unknown_filter(name));
  CallArguments arguments;
  if (current().is_operator("(")) arguments = parse_arguments();
  return make(offset, FilterUse{std::move(base), std::move(name), filter, std::move(arguments)});
}

ExpressionPtr Parser::parse_test(ExpressionPtr base) {
  const Offset offset = expect("is");
  const bool is_negated = skip_if("not");
  std::string name = parse_dotted_name();
  const Test test = find_test(name);
  if (test == nullptr && conditional_depth_ == 0) unknown_.emplace_back(offset, unknown_test(name));
  CallArguments arguments;
  const Token& token = current();
  const bool is_value = token.kind == Token::Kind::kName || token.kind == Token::Kind::kText ||
                        token.kind == Token::Kind::kInteger || token.kind == Token::Kind::kReal ||
                        token.is_operator("[") || token.is_operator("{");
  if (token.is_operator("(")) {
    arguments = parse_arguments();
  } else if (is_value && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) refuse("tests cannot be chained: x is a is b");
    arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExpressionPtr use = make(offset, TestUse{std::move(base), std::move(name), test, std::move(arguments)});
  return is_negated ? make(offset, Negation{std::move(use)}) : std::move(use);
}

CallArguments Parser::parse_arguments() {
  CallArguments arguments;
  expect("(");
  for (bool is_first = true; !current().is_operator(")"); is_first = false) {
    if (!is_first) expect(",");
    if (current().is_operator(")")) break;
    const bool is_keyword = current().kind == Token::Kind::kName && following().is_operator("=");
    if (current().is_operator("**") && arguments.more_named == nullptr) {
      next();
      arguments.more_named = parse_expression();
    } else if (arguments.more_named != nullptr) {
      refuse("expected ')': nothing may follow **values");
    } else if (is_keyword) {
      std::string name = next().text;
      next();
      arguments.named.emplace_back(std::move(name), parse_expression());
    } else if (arguments.more_positional != nullptr || (!current().is_operator("*") && !arguments.named.empty())) {
      refuse("expected name=value: only these may follow named values and *values");
    } else if (skip_if("*")) {
      arguments.more_positional = parse_expression();
    } else {
      arguments.positional.push_back(parse_expression());
    }
  }
  expect(")");
  return arguments;
}

}  // namespace tessera::internal::jinja
