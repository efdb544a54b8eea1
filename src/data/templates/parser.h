// Tokens to a Program. One class in three files: statements (parser.cc), expressions (expression_parser.cc), and
// what follows values in them (postfix_parser.cc).
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/templates/syntax.h"
#include "data/templates/token.h"

namespace tessera::internal::jinja {

// Throws UsageError with the place and what is expected there.
std::shared_ptr<const Program> parse_program(SourceText source);

class Parser {
 public:
  Parser(const SourceText& source, Program& program);

  Block parse_template();

 private:
  using Names = std::initializer_list<std::string_view>;

  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool skip_if(std::string_view name_or_operator);
  Offset expect(std::string_view name_or_operator);
  std::string expect_name();
  void expect_kind(Token::Kind kind, std::string_view what);
  [[noreturn]] void refuse_found(const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& mistake) const { source_.refuse(current().offset, mistake); }

  // Statements; each begins behind the tag's name.
  Block parse_block(Names ends);  // up to a tag of one of these names
  bool parse_statement(Block& block, Names ends);
  Statement parse_tag();
  Statement parse_if(Offset offset), parse_for(Offset offset), parse_set(Offset offset), parse_macro(Offset offset);
  Statement parse_call_block(Offset offset), parse_filter_block(Offset offset), parse_with(Offset offset);
  Statement parse_generation(Offset offset), parse_loop_control(Offset offset, bool is_break);
  void parse_signature(Signature& signature);
  void parse_macro_body(MacroDefinition& macro, std::string_view end);
  Block parse_body(std::string_view end);  // and the tag that ends it
  Target parse_target(bool allows_members, Names ends), parse_target_part(bool allows_members);

  // Expressions.
  ExpressionPtr parse_expression(), parse_or(), parse_and(), parse_not(), parse_comparison(), parse_sum();
  ExpressionPtr parse_concatenation(), parse_product(), parse_power(), parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary(), parse_list(), parse_dict(), parse_parentheses();
  ExpressionPtr parse_tuple(bool with_conditionals = true, Names ends = {}, bool may_be_empty = false);
  ExpressionPtr parse_postfix(ExpressionPtr base), parse_filters_and_tests(ExpressionPtr base);
  ExpressionPtr parse_subscript(ExpressionPtr base), parse_filter(ExpressionPtr base), parse_test(ExpressionPtr base);
  ExpressionPtr parse_item(ExpressionPtr base);
  CallArguments parse_arguments();
  std::string parse_dotted_name();
  bool is_tuple_end(Names ends) const;

  ExpressionPtr make(Offset offset, ExpressionForm form) const;

  const SourceText& source_;
  Program& program_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;              // of what is being parsed
  std::size_t conditional_depth_ = 0;  // of {% if %}
  std::size_t loop_depth_ = 0;         // of loops that break and continue can reach
  std::vector<Signature*> macros_;     // around here
  // Unknown filters and tests that are sure to be a mistake: those behind a condition may never run.
  std::vector<std::pair<Offset, std::string>> unknown_;
};

}  // namespace tessera::internal::jinja
