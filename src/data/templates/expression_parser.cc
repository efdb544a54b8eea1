// Expressions, in Jinja2's order of operators: conditions bind least, then or, and, not, comparisons, + -, ~, * / // %,
// signs, and filters and tests most.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "data/templates/parser.h"

namespace tessera::internal::jinja {
namespace {

// Levels of expressions within each other, and of a chain such as a + b + c: evaluation recurses through them.
constexpr std::size_t kMaxExpressionHeight = 200;

// From those that bind least; all of a level bind alike, from the left.
constexpr std::string_view kOperators[][8] = {{"or"},     {"and"}, {"==", "!=", "<", "<=", ">", ">=", "in", "not in"},
                                              {"+", "-"}, {"~"},   {"*", "/", "//", "%"}};
constexpr std::size_t kComparisonLevel = 2;

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
  ExpressionPtr chosen = parse_binary();
  while (current().is("if")) {
    const Offset offset = next().offset;
    ExpressionPtr test = parse_binary();
    ExpressionPtr conditional = make(Kind::kConditional, offset, std::move(test), std::move(chosen));
    conditional->parts.push_back(skip_if("else") ? parse_expression() : nullptr);
    chosen = checked(std::move(conditional));
  }
  --depth_;
  return chosen;
}

std::string_view Parser::operator_here(std::size_t level) const {
  const bool is_not_in = current().is("not") && following().is("in");
  for (const std::string_view symbol : kOperators[level]) {
    if (is_not_in ? symbol == "not in" : current().is(symbol)) return symbol;
  }
  return "";
}

ExpressionPtr Parser::parse_binary(std::size_t level) {
  if (level == kComparisonLevel && current().is("not")) return parse_not();
  if (level == std::size(kOperators)) return parse_unary();
  ExpressionPtr left = parse_binary(level + 1);
  for (std::string_view symbol = operator_here(level); !symbol.empty(); symbol = operator_here(level)) {
    const Offset offset = next().offset;
    if (symbol == "not in") next();
    ExpressionPtr right = parse_binary(level + 1);
    left = make(Kind::kOperation, offset, std::move(left), std::move(right));
    left->name = symbol;
    if (level == kComparisonLevel && !operator_here(level).empty()) {
      refuse("comparisons in a chain are not supported: join them by 'and'");
    }
  }
  if (current().is("**")) refuse("the operator ** is not supported");
  return left;
}

ExpressionPtr Parser::parse_not() {
  std::vector<Offset> offsets;
  while (current().is("not")) offsets.push_back(next().offset);
  ExpressionPtr operand = parse_binary(kComparisonLevel);
  for (; !offsets.empty(); offsets.pop_back()) operand = make(Kind::kNot, offsets.back(), std::move(operand));
  return operand;
}

// Of -x|f, the filter takes -x; of -x.y, the sign takes x.y.
ExpressionPtr Parser::parse_unary() {
  std::vector<Offset> offsets;
  while (current().is("-")) offsets.push_back(next().offset);
  ExpressionPtr value = parse_postfix(parse_primary());
  for (; !offsets.empty(); offsets.pop_back()) value = make(Kind::kNegative, offsets.back(), std::move(value));
  while (current().is("|") || current().is("is")) {
    value = skip_if("|") ? parse_filter(std::move(value)) : parse_test(std::move(value));
  }
  return value;
}

ExpressionPtr Parser::parse_primary() {
  const Token token = current();
  ExpressionPtr constant = make(Kind::kConstant, token.offset);
  switch (token.kind) {
    case Token::Kind::kName:
      if (is_one_of({"true", "True", "false", "False"})) {
        constant->value = Value(token.text == "true" || token.text == "True");
      } else if (!is_one_of({"none", "None"})) {
        constant->kind = Kind::kName;
        constant->name = token.text;
      }
      next();
      return constant;
    case Token::Kind::kText: {
      std::string text;
      while (current().kind == Token::Kind::kText) text += next().text;  // "a" "b" is "ab"
      constant->value = Value(std::move(text));
      return constant;
    }
    case Token::Kind::kInteger: {
      const auto whole = parse_integer(token.text);
      if (!whole) refuse(kBeyond64Bits);
      constant->value = Value(static_cast<std::int64_t>(*whole));
      next();
      return constant;
    }
    case Token::Kind::kReal:
      constant->value = Value(parse_real(next().text).value_or(0));
      return constant;
    default:
      if (skip_if("{")) return parse_dict(token.offset);
      if (skip_if("[")) {
        constant->kind = Kind::kList;
        parse_separated("]", [&] { constant->parts.push_back(parse_expression()); });
        return checked(std::move(constant));
      }
      if (!skip_if("(")) refuse_found("a value");
      constant = parse_tuple(/*with_conditionals=*/true, /*may_be_empty=*/true);
      expect(")");
      return constant;
  }
}

// Behind its bracket.
ExpressionPtr Parser::parse_dict(Offset offset) {
  ExpressionPtr dict = make(Kind::kDict, offset);
  parse_separated("}", [&] {
    dict->parts.push_back(parse_expression());
    expect(":");
    dict->parts.push_back(parse_expression());
  });
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
  ExpressionPtr first = with_conditionals ? parse_expression() : parse_binary();
  if (!current().is(",")) return first;
  tuple->parts.push_back(std::move(first));
  while (skip_if(",")) {
    if (!is_end()) tuple->parts.push_back(with_conditionals ? parse_expression() : parse_binary());
  }
  return checked(std::move(tuple));
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr base) {
  while (true) {
    const Offset offset = current().offset;
    if (skip_if(".")) {
      base = make(Kind::kAttribute, offset, std::move(base));
      base->name = expect_name();
    } else if (skip_if("[")) {
      base = parse_brackets(std::move(base));
    } else if (current().is("(")) {
      const Offset begin = base->offset;
      base = make(Kind::kCall, begin, std::move(base));
      parse_arguments(*base);
      base = checked(std::move(base));
    } else {
      return base;
    }
  }
}

// A key or a slice.
ExpressionPtr Parser::parse_brackets(ExpressionPtr base) {
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
                          current().is("[") ||
                          (is_name() && !is_one_of({"and", "else", "if", "in", "not", "or", "is"}));
  if (current().is("(")) {
    parse_arguments(*test);
  } else if (is_literal) {
    test->parts.push_back(parse_postfix(parse_primary()));
  }
  if (current().is("is")) refuse("tests cannot be chained: x is a is b");
  const Offset offset = test->offset;
  test = checked(std::move(test));
  return is_negated ? make(Kind::kNot, offset, std::move(test)) : std::move(test);
}

void Parser::parse_arguments(Expression& call) {
  expect("(");
  parse_separated(")", [&] {
    if (current().is("*") || current().is("**")) refuse("arguments by * and ** are not supported");
    if (is_name() && following().is("=")) {
      call.keywords.push_back(next().text);
      next();
    } else if (!call.keywords.empty()) {
      refuse("expected name=value: only these may follow named values");
    }
    call.parts.push_back(parse_expression());
  });
}

}  // namespace tessera::internal::jinja
