// What follows a value in an expression: attributes, items, calls, filters and tests.
#include "data/templates/parser.h"

namespace tessera::internal::jinja {

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
