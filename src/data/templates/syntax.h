// A parsed template: statements that hold expressions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/templates/arithmetic.h"
#include "data/templates/filters.h"
#include "data/templates/source_text.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional, more_named;  // *values, **values; may be null
};

struct Constant {
  Value value;  // shared by all renderings
};
struct Variable {
  std::string name;
};
struct ItemList {  // [a, b] or (a, b)
  std::vector<ExpressionPtr> items;
  bool is_tuple;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct Concatenation {  // a ~ b ~ c
  std::vector<ExpressionPtr> parts;
};
struct Arithmetic {
  Operation operation;
  ExpressionPtr left, right;
};
struct Sign {
  bool is_negative;
  ExpressionPtr operand;
};
struct Negation {
  ExpressionPtr operand;
};
struct AndOr {
  bool is_and;
  ExpressionPtr left, right;
};
struct Comparison {  // first < second in third ...
  struct Link {
    std::string symbol;  // one of Python's comparisons, "in" or "not in"
    ExpressionPtr right;
  };
  ExpressionPtr first;
  std::vector<Link> links;
};
struct Conditional {
  ExpressionPtr test, chosen, otherwise;  // otherwise may be null
};
struct AttributeAccess {
  ExpressionPtr base;
  std::string name;
};
struct ItemAccess {
  ExpressionPtr base, key;
};
struct SliceAccess {
  ExpressionPtr base, start, stop, step;  // the last three may be null
};
struct CallExpression {
  ExpressionPtr function;
  CallArguments arguments;
};
struct FilterUse {
  ExpressionPtr base;  // null: what a block gives
  std::string name;
  Filter filter;  // null: unknown, refused when used
  CallArguments arguments;
};
struct TestUse {
  ExpressionPtr base;
  std::string name;
  Test test;  // null: unknown, refused when used
  CallArguments arguments;
};

using ExpressionForm =
    std::variant<Constant, Variable, ItemList, DictLiteral, Concatenation, Arithmetic, Sign, Negation, AndOr,
                 Comparison, Conditional, AttributeAccess, ItemAccess, SliceAccess, CallExpression, FilterUse, TestUse>;

struct Expression {
  Offset offset;
  std::size_t height;  // levels of expressions
  ExpressionForm form;
};
std::size_t height_within(const ExpressionForm& form);  // of the highest part; 0: it has none

struct Statement;
using Block = std::vector<Statement>;

// What an assignment fills: a name, a member of a namespace, or a tuple of targets.
struct Target {
  Offset offset;
  std::string name;
  std::string member = {};         // "": the name itself
  std::vector<Target> parts = {};  // of a tuple, which has no name
  bool is_tuple = false;
};

struct Data {
  std::string text;
};
struct Print {
  ExpressionPtr value;
};
struct If {
  struct Branch {
    ExpressionPtr test;
    Block body;
  };
  std::vector<Branch> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExpressionPtr items, filter;  // filter may be null
  Block body, otherwise;
  bool is_recursive;
};
struct Set {
  Target target;
  ExpressionPtr value;
};
struct SetBlock {
  Target target;
  ExpressionPtr filter;  // FilterUse without base; may be null
  Block body;
};
struct Signature {
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults;  // of the last names
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};
struct MacroDefinition {
  std::string name;  // "" for the body of a call block
  Signature signature;
  Block body;
};
struct CallBlock {
  ExpressionPtr call;
  std::unique_ptr<MacroDefinition> caller;
};
struct FilterBlock {
  ExpressionPtr filter;
  Block body;
};
struct With {
  std::vector<Target> targets;
  std::vector<ExpressionPtr> values;
  Block body;
};
struct Generation {
  Block body;
};
struct Break {};
struct Continue {};

struct Statement {
  Offset offset;
  std::variant<Data, Print, If, For, Set, SetBlock, MacroDefinition, CallBlock, FilterBlock, With, Generation, Break,
               Continue>
      form;
};

struct Program {
  explicit Program(SourceText text) : source(std::move(text)) {}

  SourceText source;
  Block body = {};
  bool marks_generation = false;
};

}  // namespace tessera::internal::jinja
