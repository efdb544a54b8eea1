// Runs a program: statements write text (evaluator.cc), expressions give values (evaluate_expression.cc).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/templates/python.h"
#include "data/templates/rendering.h"
#include "data/templates/syntax.h"

namespace tessera::internal::jinja {

class Scope;
using ScopePtr = std::shared_ptr<Scope>;  // shared by the macros that are defined in it

class Scope {
 public:
  explicit Scope(ScopePtr around) : around_(std::move(around)) {}

  // Null: unknown. `num_looked_at` grows by the names compared.
  const Value* find(std::string_view name, std::size_t& num_looked_at) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around_.get()) {
      num_looked_at += scope->names_.size() + 1;
      for (const auto& [known, value] : scope->names_) {
        if (known == name) return &value;
      }
    }
    return nullptr;
  }

  // `name` must outlive the scope: of the program or of the variables.
  void set(std::string_view name, Value value) {
    for (auto& [known, old] : names_) {
      if (known != name) continue;
      old = std::move(value);
      return;
    }
    names_.emplace_back(name, std::move(value));
  }
  void clear() { names_.clear(); }

 private:
  ScopePtr around_;
  std::vector<std::pair<std::string_view, Value>> names_;
};

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

  const Program& program_;
  Rendering& rendering_;
  RenderedChat chat_;
  std::string* output_ = &chat_.text;  // or a text that is being captured
};

}  // namespace tessera::internal::jinja
