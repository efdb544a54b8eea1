// Expressions, in Jinja2's order of operators: conditions bind least, then or, and, not, comparisons, + -, ~, * / // %,
// signs, and filters and tests most.
#include <fmt/format.h>

#include <algorithm>

#include "data/templates/parser.h"

namespace tessera::internal::jinja {
namespace {

// Levels of expressions within each other, and of a chain such as a + b + c: evaluation recurses through them.
constexpr std::size_t kMaxExpressionHeight = 200;

}  // namespace

ExpressionPtr Parser::make(Kind kind, Offset offset, ExpressionPtr first, ExpressionPtr second) const {
  auto expression = std::make_unique<Expression>(Expression{kind, offset});
  if (first != nullptr) expression->parts.push_back(std::move(first));
  if (second != nullptr) expression->parts.push_back(std::move(second));
  return checked(std::move(expression));
}

// With its height, when all its parts are there.
ExpressionPtr Parser::checked(ExpressionPtr expression) const {
  for (const ExpressionPtr& part : expression->parts) {
    if (part != nullptr) expression->height = std::max(expression->height, part->height + 1);
  }
  if (expression->height > kMaxExpressionHeight) {
    source_.refuse(expression->offset, fmt::format("this expression has more than {} levels", kMaxExpressionHeight));
  }
  return expression;
}

ExpressionPtr Parser::parse_expression() {
  if (++depth_ > kMaxExpressionHeight) {
    refuse(fmt::format("expressions are nested more than {} levels deep", kMaxExpressionHeight));
  }
  ExpressionPtr chosen = parse_binary(1);
  while (current().is("if")) {
    const Offset offset = next().offset;
    ExpressionPtr test = parse_binary(1);
    ExpressionPtr conditional = make(Kind::kConditional, offset, std::move(test), std::move(chosen));
    conditional->parts.push_back(skip_if("else") ? parse_expression() : nullptr);
    chosen = checked(std::move(conditional));
  }
  --depth_;
  return chosen;
}

const OperatorSymbol* Parser::operator_here(int level) const {
  const bool is_not_in = current().is("not") && following().is("in");
  const auto found = std::find_if(std::begin(kOperatorSymbols), std::end(kOperatorSymbols), [&](const auto& each) {
    return each.level == level && (is_not_in ? each.operation == Operator::kNotIn : current().is(each.symbol));
  });
  return found == std::end(kOperatorSymbols) ? nullptr : found;
}

ExpressionPtr Parser::parse_binary(int level) {
  if (level == kComparisonLevel && current().is("not")) return parse_not();
  if (level > kHighestLevel) return parse_unary();
  ExpressionPtr left = parse_binary(level + 1);
  while (const OperatorSymbol* symbol = operator_here(level)) {
    const Offset offset = next().offset;
    if (symbol->operation == Operator::kNotIn) next();
    ExpressionPtr right = parse_binary(level + 1);
    left = make(Kind::kOperation, offset, std::move(left), std::move(right));
    left->operation = symbol->operation;
    if (level == kComparisonLevel && operator_here(level) != nullptr) {
      refuse("comparisons in a chain are not supported: join them by 'and'");
    }
  }
  if (level == kHighestLevel && current().is("**")) refuse("the operator ** is not supported");
  return left;
}

ExpressionPtr Parser::parse_not() {
  std::vector<Offset> offsets;
  while (current().is("not")) offsets.push_back(next().offset);
  ExpressionPtr operand = parse_binary(kComparisonLevel);
  for (; !offsets.empty(); offsets.pop_back()) operand = make(Kind::kNot, offsets.back(), std::move(operand));
  return operand;
}

// Of -x|abs, the filter takes -x; of -x.y, the sign takes x.y.
ExpressionPtr Parser::parse_unary(bool with_filters) {
  std::vector<Offset> offsets;
  while (current().is("-")) offsets.push_back(next().offset);
  ExpressionPtr value = parse_postfix(parse_primary());
  for (; !offsets.empty(); offsets.pop_back()) value = make(Kind::kNegative, offsets.back(), std::move(value));
  return with_filters ? parse_filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr Parser::parse_primary() {
  const Token token = current();
  ExpressionPtr constant = make(Kind::kConstant, token.offset);
  switch (token.kind) {
    case Token::Kind::kName:
      return parse_constant(next());
    case Token::Kind::kText: {
      std::string text;
      while (current().kind == Token::Kind::kText) text += next().text;  // "a" "b" is "ab"
      constant->value = Value(std::move(text));
      return constant;
    }
    case Token::Kind::kInteger:
      constant->value = Value(next().integer);
      return constant;
    case Token::Kind::kReal:
      constant->value = Value(next().real);
      return constant;
    default:
      if (token.is("[")) return parse_list();
      if (token.is("{")) return parse_dict();
      if (!skip_if("(")) refuse_found("a value");
      ExpressionPtr value = parse_tuple(/*with_conditionals=*/true, /*may_be_empty=*/true);
      expect(")");
      return value;
  }
}

// true, false, none, or another name.
ExpressionPtr Parser::parse_constant(const Token& name) {
  ExpressionPtr expression = make(Kind::kConstant, name.offset);
  if (name.text == "true" || name.text == "True") {
    expression->value = Value(true);
  } else if (name.text == "false" || name.text == "False") {
    expression->value = Value(false);
  } else if (name.text != "none" && name.text != "None") {
    expression->kind = Kind::kName;
    expression->name = name.text;
  }
  return expression;
}

ExpressionPtr Parser::parse_list() {
  ExpressionPtr list = make(Kind::kList, expect("["));
  while (!current().is("]")) {
    if (!list->parts.empty()) expect(",");
    if (!current().is("]")) list->parts.push_back(parse_expression());
  }
  expect("]");
  return checked(std::move(list));
}

ExpressionPtr Parser::parse_dict() {
  ExpressionPtr dict = make(Kind::kDict, expect("{"));
  while (!current().is("}")) {
    if (!dict->parts.empty()) expect(",");
    if (current().is("}")) break;
    dict->parts.push_back(parse_expression());
    expect(":");
    dict->parts.push_back(parse_expression());
  }
  expect("}");
  return checked(std::move(dict));
}

// One expression, or several with commas between them.
ExpressionPtr Parser::parse_tuple(bool with_conditionals, bool may_be_empty) {
  const auto is_end = [&] {
    return current().kind == Token::Kind::kPrintEnd || current().kind == Token::Kind::kTagEnd || current().is(")");
  };
  ExpressionPtr tuple = make(Kind::kTuple, current().offset);
  if (is_end()) {
    if (!may_be_empty) refuse_found("an expression");
    return tuple;
  }
  ExpressionPtr first = with_conditionals ? parse_expression() : parse_binary(1);
  if (!current().is(",")) return first;
  tuple->parts.push_back(std::move(first));
  while (skip_if(",")) {
    if (!is_end()) tuple->parts.push_back(with_conditionals ? parse_expression() : parse_binary(1));
  }
  return checked(std::move(tuple));
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr base) {
  while (true) {
    if (current().is(".")) {
      base = parse_dot(std::move(base));
    } else if (current().is("[")) {
      base = parse_brackets(std::move(base));
    } else if (current().is("(")) {
      base = parse_call(std::move(base));
    } else {
      return base;
    }
  }
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr base) {
  while (true) {
    if (skip_if("|")) {
      base = parse_filter(std::move(base));
    } else if (current().is("is")) {
      base = parse_test(std::move(base));
    } else if (current().is("(")) {
      base = parse_call(std::move(base));
    } else {
      return base;
    }
  }
}

ExpressionPtr Parser::parse_dot(ExpressionPtr base) {
  const Offset offset = expect(".");
  if (current().kind == Token::Kind::kInteger) {
    const Token index = next();
    ExpressionPtr key = make(Kind::kConstant, index.offset);
    key->value = Value(index.integer);
    return make(Kind::kItem, offset, std::move(base), std::move(key));
  }
  if (!is_name()) refuse_found("a name or a number");
  ExpressionPtr attribute = make(Kind::kAttribute, offset, std::move(base));
  attribute->name = next().text;
  return attribute;
}

// A key or a slice.
ExpressionPtr Parser::parse_brackets(ExpressionPtr base) {
  expect("[");
  const Offset offset = current().offset;
  const auto parse_bound = [&] { return current().is("]") || current().is(":") ? nullptr : parse_expression(); };
  ExpressionPtr first = parse_bound();
  if (!current().is(":")) {
    if (first == nullptr) refuse_found("an index");
    expect("]");
    return make(Kind::kItem, offset, std::move(base), std::move(first));
  }
  ExpressionPtr slice = make(Kind::kSlice, offset, std::move(base));
  slice->parts.push_back(std::move(first));
  expect(":");
  slice->parts.push_back(parse_bound());
  slice->parts.push_back(skip_if(":") ? parse_bound() : nullptr);
  expect("]");
  return checked(std::move(slice));
}

ExpressionPtr Parser::parse_filter(ExpressionPtr base) {
  ExpressionPtr filter = make(Kind::kFilter, current().offset, std::move(base));
  filter->name = expect_name();
  if (current().is("(")) parse_arguments(*filter);
  return checked(std::move(filter));
}

ExpressionPtr Parser::parse_test(ExpressionPtr base) {
  ExpressionPtr test = make(Kind::kTest, expect("is"), std::move(base));
  const bool is_negated = skip_if("not");
  test->name = expect_name();
  const bool is_literal = current().kind == Token::Kind::kText || current().kind == Token::Kind::kInteger ||
                          current().kind == Token::Kind::kReal || current().is("[") || current().is("{");
  if (current().is("(")) {
    parse_arguments(*test);
  } else if (is_literal || (is_name() && !is_one_of({"else", "or", "and"}))) {
    if (current().is("is")) refuse("tests cannot be chained: x is a is b");
    test->parts.push_back(parse_postfix(parse_primary()));
  }
  const Offset offset = test->offset;
  test = checked(std::move(test));
  return is_negated ? make(Kind::kNot, offset, std::move(test)) : std::move(test);
}

ExpressionPtr Parser::parse_call(ExpressionPtr function) {
  const Offset offset = function->offset;
  ExpressionPtr call = make(Kind::kCall, offset, std::move(function));
  parse_arguments(*call);
  return checked(std::move(call));
}

void Parser::parse_arguments(Expression& call) {
  expect("(");
  for (bool is_first = true; !current().is(")"); is_first = false) {
    if (!is_first) expect(",");
    if (current().is(")")) break;
    if (current().is("*") || current().is("**")) refuse("arguments by * and ** are not supported");
    if (is_name() && following().is("=")) {
      const std::string name = next().text;
      if (std::find(call.keywords.begin(), call.keywords.end(), name) != call.keywords.end()) {
        refuse(fmt::format("got two values for '{}'", name));
      }
      call.keywords.push_back(name);
      next();
    } else if (!call.keywords.empty()) {
      refuse("expected name=value: only these may follow named values");
    }
    call.parts.push_back(parse_expression());
  }
  expect(")");
}

}  // namespace tessera::internal::jinja
