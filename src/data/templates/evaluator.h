// Runs a program: statements write text (evaluator.cc), expressions give values (evaluate_expression.cc).
#pragma once

#include <string>

#include "data/templates/rendering.h"
#include "data/templates/scope.h"
#include "data/templates/syntax.h"

namespace tessera::internal::jinja {

class Evaluator {
 public:
  Evaluator(const Program& program, Rendering& rendering) : program_(program), rendering_(rendering) {}

  RenderedChat run(const Json& variables);
  Value call_macro(const Statement& macro, const ScopePtr& scope, const Arguments& arguments);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Flow execute(const Block& block, const ScopePtr& scope);
  Flow execute(const Statement& statement, const ScopePtr& scope);
  void loop(const Statement& loop, const ScopePtr& scope);
  void capture(const Statement& capture, const ScopePtr& scope);
  void mark_generation(const Block& body, const ScopePtr& scope);
  void assign(const Expression& target, Value value, const ScopePtr& scope);
  std::string text_of(const Block& block, const ScopePtr& scope);
  void write(const Value& value);

  Value evaluate(const Expression& expression, const ScopePtr& scope);
  Value value_of(const Expression& expression, const ScopePtr& scope);
  Value value_of_name(const std::string& name, const ScopePtr& scope);
  Value value_of_dict(const Expression& dict, const ScopePtr& scope);
  Value value_of_operation(const Expression& operation, const ScopePtr& scope);
  Value value_of_slice(const Expression& slice, const ScopePtr& scope);
  Value value_of_call(const Expression& call, const ScopePtr& scope);
  Arguments arguments_of(const Expression& call, const ScopePtr& scope);
  bool truth(const Expression& expression, const ScopePtr& scope) { return truth_of(evaluate(expression, scope)); }

  const Program& program_;
  Rendering& rendering_;
  RenderedChat chat_;
  std::string* output_ = &chat_.text;  // or a text that is being captured
};

}  // namespace tessera::internal::jinja
