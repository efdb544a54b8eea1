// Runs a program: statements write text, expressions give values. One class in four files: statements
// (evaluator.cc), expressions (evaluate_expression.cc), loops (loop.cc) and macros (macro.cc).
#pragma once

#include <string>
#include <vector>

#include "data/templates/chat_template.h"
#include "data/templates/rendering.h"
#include "data/templates/scope.h"
#include "data/templates/syntax.h"

namespace tessera::internal::jinja {

class Evaluator {
 public:
  Evaluator(const Program& program, Rendering& rendering) : program_(program), rendering_(rendering) {}

  RenderedChat run(const Json& variables);

  // For macros and recursive loops, which call back.
  Rendering& rendering() { return rendering_; }
  Value evaluate(const Expression& expression, const ScopePtr& scope);
  std::string captured(const Block& block, const ScopePtr& scope);  // its text
  std::string run_loop(const For& loop, const Value& items, const ScopePtr& scope, std::size_t depth);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // Statements.
  Flow execute(const Block& block, const ScopePtr& scope);
  Flow execute(const Statement& statement, const ScopePtr& scope);
  Flow run_if(const If& statement, const ScopePtr& scope);
  void run_set(const Target& target, Value value, const ScopePtr& scope);
  void run_generation(const Generation& generation, const ScopePtr& scope);
  Flow run_with(const With& with, const ScopePtr& scope);
  void iterate(const For& loop, const Value& items, const ScopePtr& scope, std::size_t depth);
  void define(const MacroDefinition& macro, const ScopePtr& scope);
  void run_call_block(const CallBlock& block, const ScopePtr& scope);
  void write(const Value& value);
  void check_output();

  // Expressions, one form each.
  Value visit(const Constant& form, const ScopePtr& scope);
  Value visit(const Variable& form, const ScopePtr& scope);
  Value visit(const ItemList& form, const ScopePtr& scope);
  Value visit(const DictLiteral& form, const ScopePtr& scope);
  Value visit(const Concatenation& form, const ScopePtr& scope);
  Value visit(const Arithmetic& form, const ScopePtr& scope);
  Value visit(const Sign& form, const ScopePtr& scope);
  Value visit(const Negation& form, const ScopePtr& scope);
  Value visit(const AndOr& form, const ScopePtr& scope);
  Value visit(const Comparison& form, const ScopePtr& scope);
  Value visit(const Conditional& form, const ScopePtr& scope);
  Value visit(const AttributeAccess& form, const ScopePtr& scope);
  Value visit(const ItemAccess& form, const ScopePtr& scope);
  Value visit(const SliceAccess& form, const ScopePtr& scope);
  Value visit(const CallExpression& form, const ScopePtr& scope);
  Value visit(const FilterUse& form, const ScopePtr& scope);
  Value visit(const TestUse& form, const ScopePtr& scope);
  bool truth(const Expression& expression, const ScopePtr& scope);
  Arguments arguments_of(const CallArguments& arguments, const ScopePtr& scope);
  Value call_function(const CallExpression& form, Arguments arguments, const ScopePtr& scope);
  Value apply_filter(const FilterUse& use, const Value& value, const ScopePtr& scope);
  Value apply_chain(const Expression& filters, const Value& value, const ScopePtr& scope);

  const Program& program_;
  Rendering& rendering_;
  RenderedChat chat_;
  std::string* output_ = &chat_.text;   // or a text that is being captured
  const Value* block_value_ = nullptr;  // what a filter without a base takes
};

}  // namespace tessera::internal::jinja
