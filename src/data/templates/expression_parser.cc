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

}  // namespace

ExpressionPtr Parser::make(Offset offset, ExpressionForm form) const {
  const std::size_t height = 1 + height_within(form);
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

}  // namespace tessera::internal::jinja
