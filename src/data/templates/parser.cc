#include "data/templates/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/text.h"

namespace tessera::internal::jinja {
namespace {

// Levels of tags within tags; published templates have at most 20, {% elif %} counted as within.
constexpr std::size_t kMaxBlockDepth = 100;

}  // namespace

Parser::Parser(Program& program) : program_(program), source_(program.source), tokens_(tokens_of(program.source)) {}

void Parser::run() {
  program_.body = parse_block({});
}

bool Parser::is_one_of(Names names) const {
  return is_name() && std::find(names.begin(), names.end(), current().text) != names.end();
}

bool Parser::skip_if(std::string_view name_or_operator) {
  if (!current().is(name_or_operator)) return false;
  next();
  return true;
}

Offset Parser::expect(std::string_view name_or_operator) {
  if (!current().is(name_or_operator)) refuse_found(fmt::format("'{}'", name_or_operator));
  return next().offset;
}

std::string Parser::expect_name() {
  if (!is_name()) refuse_found("a name");
  return next().text;
}

void Parser::expect_kind(Token::Kind kind, std::string_view what) {
  if (current().kind != kind) refuse_found(std::string(what));
  next();
}

void Parser::refuse_found(const std::string& expected) const {
  const Token& token = current();
  refuse(fmt::format("expected {}, found {}", expected,
                     token.kind == Token::Kind::kEnd    ? "the end of the template"
                     : token.kind == Token::Kind::kText ? "a text"
                                                        : fmt::format("'{}'", printable(token.text, 60))));
}

Block Parser::parse_block(Names ends) {
  if (++depth_ > kMaxBlockDepth) refuse(fmt::format("tags are nested more than {} levels deep", kMaxBlockDepth));
  Block block;
  while (parse_statement(block, ends)) {
  }
  --depth_;
  return block;
}

// False at the end of the block; its tag is then entered.
bool Parser::parse_statement(Block& block, Names ends) {
  const Token token = next();
  switch (token.kind) {
    case Token::Kind::kData:
      block.push_back({Statement::Kind::kData, token.offset, token.text});
      return true;
    case Token::Kind::kPrintBegin:
      block.push_back({Statement::Kind::kPrint, token.offset});
      block.back().value = parse_tuple();
      expect_kind(Token::Kind::kPrintEnd, "}}");
      return true;
    case Token::Kind::kTagBegin:
      if (is_one_of(ends)) return false;
      block.push_back(parse_tag());
      expect_kind(Token::Kind::kTagEnd, "%}");
      return true;
    default:
      if (ends.size() > 0) {
        refuse(fmt::format("expected {{% {} %}} before the end of the template",
                           join(std::vector<std::string>(ends.begin(), ends.end()), " %} or {% ")));
      }
      return false;
  }
}

Block Parser::parse_body(std::string_view end) {
  expect_kind(Token::Kind::kTagEnd, "%}");
  Block body = parse_block({end});
  next();
  return body;
}

Block Parser::parse_apart(std::string_view end) {
  const std::size_t outer_loops = std::exchange(loop_depth_, 0);
  Block body = parse_body(end);
  loop_depth_ = outer_loops;
  return body;
}

Statement Parser::parse_tag() {
  const Offset offset = current().offset;
  if (is_one_of({"include", "import", "from", "extends", "block"})) {
    refuse(fmt::format("{{% {} %}} is not supported: a chat template is one text", current().text));
  }
  if (is_one_of({"autoescape", "call", "do", "print", "with"})) {
    refuse(fmt::format("{{% {} %}} is not supported", current().text));
  }
  const std::string name = is_name() ? next().text : "";
  if (name.empty()) refuse_found("the name of a tag");
  if (name == "if") return parse_if(offset);
  if (name == "for") return parse_for(offset);
  if (name == "set") return parse_set(offset);
  if (name == "macro") return parse_macro(offset);
  if (name == "filter") return parse_capture(offset, nullptr, "endfilter");
  if (name == "generation") {
    program_.marks_generation = true;
    Statement generation{Statement::Kind::kGeneration, offset};
    generation.body = parse_apart("endgeneration");
    return generation;
  }
  if (name == "break" || name == "continue") {
    if (loop_depth_ == 0) source_.refuse(offset, "expected a loop around this");
    return {name == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue, offset};
  }
  source_.refuse(
      offset,
      fmt::format("the tag '{}' is unknown or has nothing to end here{}", printable(name, 60),
                  did_you_mean(name, {"if", "for", "set", "macro", "filter", "generation", "break", "continue"})));
}

Statement Parser::parse_if(Offset offset) {
  Statement statement{Statement::Kind::kIf, offset};
  statement.value = parse_tuple(/*with_conditionals=*/false);
  expect_kind(Token::Kind::kTagEnd, "%}");
  statement.body = parse_block({"elif", "else", "endif"});
  const Token end = next();
  if (end.text == "else") statement.otherwise = parse_body("endif");
  if (end.text == "elif") {
    if (++depth_ > kMaxBlockDepth) refuse(fmt::format("tags are nested more than {} levels deep", kMaxBlockDepth));
    statement.otherwise.push_back(parse_if(end.offset));
    --depth_;
  }
  return statement;
}

Statement Parser::parse_for(Offset offset) {
  Statement loop{Statement::Kind::kFor, offset};
  loop.target = parse_target();
  expect("in");
  loop.value = parse_tuple(/*with_conditionals=*/false);
  if (skip_if("if")) loop.filter = parse_expression();
  if (current().is("recursive")) refuse("recursive loops are not supported: call a macro");
  expect_kind(Token::Kind::kTagEnd, "%}");
  ++loop_depth_;
  loop.body = parse_block({"endfor", "else"});
  if (next().text == "else") refuse("{% else %} of a loop is not supported");
  --loop_depth_;
  return loop;
}

Statement Parser::parse_set(Offset offset) {
  ExpressionPtr target = parse_target();
  if (!skip_if("=")) return parse_capture(offset, std::move(target), "endset");
  Statement statement{Statement::Kind::kSet, offset};
  statement.target = std::move(target);
  statement.value = parse_tuple();
  return statement;
}

// {% set x %} or {% set x | trim %}, and {% filter trim %}, which has no target.
Statement Parser::parse_capture(Offset offset, ExpressionPtr target, std::string_view end) {
  Statement capture{Statement::Kind::kCapture, offset};
  capture.value = make(Kind::kName, offset);
  capture.value->name = kCaptured;
  if (target == nullptr) capture.value = parse_filter(std::move(capture.value));
  while (skip_if("|")) capture.value = parse_filter(std::move(capture.value));
  capture.target = std::move(target);
  capture.body = parse_apart(end);
  return capture;
}

Statement Parser::parse_macro(Offset offset) {
  Statement macro{Statement::Kind::kMacro, offset, expect_name()};
  expect("(");
  parse_separated(")", [&] {
    macro.parameters.push_back(expect_name());
    if (skip_if("=")) {
      macro.defaults.push_back(parse_expression());
    } else if (!macro.defaults.empty()) {
      refuse("expected a default: the parameter before this has one");
    }
  });
  macro.body = parse_apart("endmacro");
  return macro;
}

// Names, members of namespaces, and several of these with commas between them.
ExpressionPtr Parser::parse_target() {
  const Offset offset = current().offset;
  ExpressionPtr first = parse_target_part();
  if (!current().is(",")) return first;
  ExpressionPtr tuple = make(Kind::kTuple, offset, std::move(first));
  while (skip_if(",")) tuple->parts.push_back(parse_target_part());
  return tuple;
}

ExpressionPtr Parser::parse_target_part() {
  const Offset offset = current().offset;
  if (is_one_of({"true", "false", "True", "False", "none", "None", "loop"})) refuse_found("a name to assign to");
  ExpressionPtr name = make(Kind::kName, offset);
  name->name = expect_name();
  if (!skip_if(".")) return name;
  ExpressionPtr member = make(Kind::kAttribute, offset, std::move(name));
  member->name = expect_name();
  return member;
}

}  // namespace tessera::internal::jinja
