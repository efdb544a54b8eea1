#include "data/templates/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/text.h"

namespace tessera::internal::jinja {
namespace {

// Levels of tags within tags; published templates have at most 10.
constexpr std::size_t kMaxBlockDepth = 100;

std::string shown_token(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kPrintEnd:
      return "}}";
    case Token::Kind::kTagEnd:
      return "%}";
    case Token::Kind::kText:
      return "a text";
    case Token::Kind::kInteger:
    case Token::Kind::kReal:
      return "a number";
    case Token::Kind::kEnd:
      return "the end of the template";
    case Token::Kind::kName:
    case Token::Kind::kOperator:
      return fmt::format("'{}'", printable(token.text, 60));
    default:
      return "text outside of tags";
  }
}

}  // namespace

Parser::Parser(const SourceText& source, Program& program)
    : source_(source), program_(program), tokens_(tokens_of(source)) {}

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
  if (current().kind != Token::Kind::kName) refuse_found("a name");
  return next().text;
}
void Parser::expect_kind(Token::Kind kind, std::string_view what) {
  if (current().kind != kind) refuse_found(std::string(what));
  next();
}
void Parser::refuse_found(const std::string& expected) const {
  refuse(fmt::format("expected {}, found {}", expected, shown_token(current())));
}

Block Parser::parse_template() {
  Block body = parse_block({});
  if (!unknown_.empty()) source_.refuse(unknown_[0].first, unknown_[0].second);
  return body;
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
      block.push_back({token.offset, Data{token.text}});
      return true;
    case Token::Kind::kPrintBegin:
      block.push_back({token.offset, Print{parse_tuple()}});
      expect_kind(Token::Kind::kPrintEnd, "}}");
      return true;
    case Token::Kind::kTagBegin:
      if (current().kind == Token::Kind::kName && std::find(ends.begin(), ends.end(), current().text) != ends.end()) {
        return false;
      }
      if (current().is_name("print")) {
        next();
        while (current().kind != Token::Kind::kTagEnd) {
          block.push_back({current().offset, Print{parse_expression()}});
          if (current().kind != Token::Kind::kTagEnd) expect(",");
        }
      } else {
        block.push_back(parse_tag());
      }
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

Statement Parser::parse_tag() {
  const Offset offset = current().offset;
  const std::string name = current().kind == Token::Kind::kName ? current().text : "";
  if (name.empty()) refuse_found("the name of a tag");
  static constexpr std::array<std::string_view, 6> kRefused = {"include", "import", "from",
                                                               "extends", "block",  "autoescape"};
  if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end()) {
    refuse(fmt::format("{{% {} %}} is not supported: a chat template is one text", name));
  }
  next();
  if (name == "if") return parse_if(offset);
  if (name == "for") return parse_for(offset);
  if (name == "set") return parse_set(offset);
  if (name == "macro") return parse_macro(offset);
  if (name == "call") return parse_call_block(offset);
  if (name == "filter") return parse_filter_block(offset);
  if (name == "with") return parse_with(offset);
  if (name == "generation") return parse_generation(offset);
  if (name == "break" || name == "continue") return parse_loop_control(offset, name == "break");
  static const std::vector<std::string> kKnown = {"if",     "for",  "set",        "macro", "call",
                                                  "filter", "with", "generation", "break", "continue"};
  source_.refuse(offset, fmt::format("the tag '{}' is unknown or has nothing to end here{}", printable(name, 60),
                                     did_you_mean(name, kKnown)));
}

Statement Parser::parse_if(Offset offset) {
  ++conditional_depth_;
  If statement;
  while (true) {
    ExpressionPtr test = parse_tuple(/*with_conditionals=*/false);
    expect_kind(Token::Kind::kTagEnd, "%}");
    statement.branches.push_back({std::move(test), parse_block({"elif", "else", "endif"})});
    const std::string end = next().text;
    if (end == "elif") continue;
    if (end == "else") statement.otherwise = parse_body("endif");
    break;
  }
  --conditional_depth_;
  return {offset, std::move(statement)};
}

Statement Parser::parse_for(Offset offset) {
  Target target = parse_target(/*allows_members=*/false, {"in"});
  expect("in");
  For loop{std::move(target), parse_tuple(/*with_conditionals=*/false, {"recursive"}), nullptr, {}, {}, false};
  if (skip_if("if")) loop.filter = parse_expression();
  loop.is_recursive = skip_if("recursive");
  expect_kind(Token::Kind::kTagEnd, "%}");
  ++loop_depth_;
  loop.body = parse_block({"endfor", "else"});
  --loop_depth_;
  if (next().text == "else") loop.otherwise = parse_body("endfor");
  return {offset, std::move(loop)};
}

Statement Parser::parse_set(Offset offset) {
  Target target = parse_target(/*allows_members=*/true, {});
  if (skip_if("=")) return {offset, Set{std::move(target), parse_tuple()}};
  ExpressionPtr filter;
  while (current().is_operator("|")) {
    next();
    filter = parse_filter(std::move(filter));
  }
  Block body = parse_body("endset");
  return {offset, SetBlock{std::move(target), std::move(filter), std::move(body)}};
}

Statement Parser::parse_macro(Offset offset) {
  MacroDefinition macro;
  macro.name = expect_name();
  parse_signature(macro.signature);
  parse_macro_body(macro, "endmacro");
  return {offset, std::move(macro)};
}

void Parser::parse_signature(Signature& signature) {
  expect("(");
  while (!current().is_operator(")")) {
    if (!signature.names.empty()) expect(",");
    if (current().is_operator(")")) break;
    const std::string name = expect_name();
    if (std::find(signature.names.begin(), signature.names.end(), name) != signature.names.end()) {
      refuse(fmt::format("the parameter '{}' appears twice", name));
    }
    signature.names.push_back(name);
    if (skip_if("=")) {
      signature.defaults.push_back(parse_expression());
    } else if (!signature.defaults.empty()) {
      refuse("expected a default: the parameter before this has one");
    }
  }
  expect(")");
}

void Parser::parse_macro_body(MacroDefinition& macro, std::string_view end) {
  macros_.push_back(&macro.signature);
  const std::size_t outer_loops = std::exchange(loop_depth_, 0);
  macro.body = parse_body(end);
  loop_depth_ = outer_loops;
  macros_.pop_back();
  // A parameter of that name is an ordinary one.
  const auto has = [&](std::string_view name) {
    return std::find(macro.signature.names.begin(), macro.signature.names.end(), name) != macro.signature.names.end();
  };
  Signature& signature = macro.signature;
  signature.uses_caller = signature.uses_caller && !has("caller");
  signature.uses_kwargs = signature.uses_kwargs && !has("kwargs");
  signature.uses_varargs = signature.uses_varargs && !has("varargs");
}

Statement Parser::parse_call_block(Offset offset) {
  CallBlock block{nullptr, std::make_unique<MacroDefinition>()};
  if (current().is_operator("(")) parse_signature(block.caller->signature);
  block.call = parse_expression();
  if (!std::holds_alternative<CallExpression>(block.call->form)) {
    source_.refuse(block.call->offset, "expected a call of a macro");
  }
  parse_macro_body(*block.caller, "endcall");
  return {offset, std::move(block)};
}

Statement Parser::parse_filter_block(Offset offset) {
  ExpressionPtr filter = parse_filter(nullptr);
  while (current().is_operator("|")) {
    next();
    filter = parse_filter(std::move(filter));
  }
  Block body = parse_body("endfilter");
  return {offset, FilterBlock{std::move(filter), std::move(body)}};
}

Statement Parser::parse_with(Offset offset) {
  With with;
  while (current().kind != Token::Kind::kTagEnd) {
    if (!with.targets.empty()) expect(",");
    with.targets.push_back(parse_target_part(/*allows_members=*/false));
    expect("=");
    with.values.push_back(parse_expression());
  }
  with.body = parse_body("endwith");
  return {offset, std::move(with)};
}

Statement Parser::parse_generation(Offset offset) {
  program_.marks_generation = true;
  const std::size_t outer_loops = std::exchange(loop_depth_, 0);
  Generation generation{parse_body("endgeneration")};
  loop_depth_ = outer_loops;
  return {offset, std::move(generation)};
}

Statement Parser::parse_loop_control(Offset offset, bool is_break) {
  if (loop_depth_ == 0) source_.refuse(offset, "expected a loop around this");
  if (is_break) return {offset, Break{}};
  return {offset, Continue{}};
}

// Without conditions and operators: names, members of namespaces, tuples of these.
Target Parser::parse_target(bool allows_members, Names ends) {
  const Offset offset = current().offset;
  std::vector<Target> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect(",");
    if (is_tuple_end(ends)) break;
    parts.push_back(parse_target_part(allows_members));
    if (!current().is_operator(",")) break;
    is_tuple = true;
  }
  if (parts.empty()) refuse_found("a name to assign to");
  if (!is_tuple) return std::move(parts[0]);
  return {offset, "", "", std::move(parts), true};
}

Target Parser::parse_target_part(bool allows_members) {
  const Offset offset = current().offset;
  if (current().is_operator("(")) {
    if (++depth_ > kMaxBlockDepth) refuse("targets are nested too deep");
    next();
    Target target = parse_target(allows_members, {});
    expect(")");
    --depth_;
    return target;
  }
  Target target{offset, expect_name()};
  static constexpr std::array<std::string_view, 7> kConstants = {"true", "false", "True", "False",
                                                                 "none", "None",  "loop"};
  if (std::find(kConstants.begin(), kConstants.end(), target.name) != kConstants.end()) {
    source_.refuse(offset, fmt::format("expected a name to assign to, found '{}'", target.name));
  }
  if (allows_members && skip_if(".")) target.member = expect_name();
  return target;
}

std::shared_ptr<const Program> parse_program(SourceText source) {
  auto program = std::make_shared<Program>(std::move(source));
  program->body = Parser(program->source, *program).parse_template();
  return program;
}

}  // namespace tessera::internal::jinja
