// Tokens to a Program. One class in two files: statements (parser.cc) and expressions (expression_parser.cc).
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/templates/syntax.h"
#include "data/templates/tokens.h"

namespace tessera::internal::jinja {

class Parser {
 public:
  // Throws UsageError with the place and what is expected there, here and later.
  explicit Parser(Program& program);

  void run();  // fills the program

 private:
  using Names = std::initializer_list<std::string_view>;
  using Kind = Expression::Kind;

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_name() const { return current().kind == Token::Kind::kName; }
  bool is_one_of(Names names) const;
  bool skip_if(std::string_view name_or_operator);
  Offset expect(std::string_view name_or_operator);
  std::string expect_name();
  void expect_kind(Token::Kind kind, std::string_view what);
  [[noreturn]] void refuse_found(const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& mistake) const { source_.refuse(current().offset, mistake); }

  // Statements; each begins behind the tag's name.
  Block parse_block(Names ends);  // up to a tag of one of these names
  bool parse_statement(Block& block, Names ends);
  Block parse_body(std::string_view end);  // and the tag that ends it
  Statement parse_tag();
  Statement parse_if(Offset offset), parse_for(Offset offset), parse_set(Offset offset), parse_macro(Offset offset);
  Statement parse_capture(Offset offset, ExpressionPtr target, std::string_view end);
  Block parse_apart(std::string_view end);  // a body that break and continue cannot leave
  ExpressionPtr parse_target(), parse_target_part();

  // Expressions.
  void parse_separated(std::string_view end, const auto& parse_one);  // by commas, up to the end
  ExpressionPtr parse_expression(), parse_binary(std::size_t level = 0), parse_not(), parse_unary();
  ExpressionPtr parse_primary(), parse_dict(Offset offset);
  ExpressionPtr parse_tuple(bool with_conditionals = true, bool may_be_empty = false);
  ExpressionPtr parse_postfix(ExpressionPtr base), parse_brackets(ExpressionPtr base);
  ExpressionPtr parse_filter(ExpressionPtr base), parse_test(ExpressionPtr base);
  void parse_arguments(Expression& call);
  std::string_view operator_here(std::size_t level) const;  // "": another token
  ExpressionPtr make(Kind kind, Offset offset, ExpressionPtr first = {}, ExpressionPtr second = {}) const;
  ExpressionPtr checked(ExpressionPtr expression) const;

  Program& program_;
  const SourceText& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;       // of what is being parsed
  std::size_t loop_depth_ = 0;  // of loops that break and continue can reach
};

void Parser::parse_separated(std::string_view end, const auto& parse_one) {
  while (!skip_if(end)) {
    parse_one();
    if (!current().is(end)) expect(",");
  }
}

}  // namespace tessera::internal::jinja
