#include "data/templates/evaluator.h"

#include <fmt/format.h>

#include "data/templates/attributes.h"
#include "data/templates/compare.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/templates/variables.h"

namespace tessera::internal::jinja {

RenderedChat Evaluator::run(const Json& variables) {
  const auto root = std::make_shared<Scope>(nullptr);
  for (const auto& [name, value] : variables.items()) root->set(name, value_of_json(rendering_, value));
  execute(program_.body, std::make_shared<Scope>(root));
  return std::move(chat_);
}

Evaluator::Flow Evaluator::execute(const Block& block, const ScopePtr& scope) {
  for (const Statement& statement : block) {
    if (const Flow flow = execute(statement, scope); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::execute(const Statement& statement, const ScopePtr& scope) {
  const PlaceGuard guard(rendering_, statement.offset);
  const auto& form = statement.form;
  if (const auto* data = std::get_if<Data>(&form)) {
    rendering_.spend_text(data->text.size());
    *output_ += data->text;
    check_output();
  } else if (const auto* print = std::get_if<Print>(&form)) {
    write(evaluate(*print->value, scope));
  } else if (const auto* condition = std::get_if<If>(&form)) {
    return run_if(*condition, scope);
  } else if (const auto* loop = std::get_if<For>(&form)) {
    const Value items = evaluate(*loop->items, scope);
    if (loop->is_recursive) {
      write(rendering_.text(run_loop(*loop, items, scope, 0)));
    } else {
      iterate(*loop, items, scope, 0);
    }
  } else if (const auto* set = std::get_if<Set>(&form)) {
    run_set(set->target, evaluate(*set->value, scope), scope);
  } else if (const auto* block = std::get_if<SetBlock>(&form)) {
    Value text = rendering_.text(captured(block->body, std::make_shared<Scope>(scope)));
    run_set(block->target, block->filter == nullptr ? text : apply_chain(*block->filter, text, scope), scope);
  } else if (const auto* macro = std::get_if<MacroDefinition>(&form)) {
    define(*macro, scope);
  } else if (const auto* call = std::get_if<CallBlock>(&form)) {
    run_call_block(*call, scope);
  } else if (const auto* filtered = std::get_if<FilterBlock>(&form)) {
    const auto inner = std::make_shared<Scope>(scope);
    const Value text = rendering_.text(captured(filtered->body, inner));
    write(apply_chain(*filtered->filter, text, inner));
  } else if (const auto* with = std::get_if<With>(&form)) {
    return run_with(*with, scope);
  } else if (const auto* generation = std::get_if<Generation>(&form)) {
    run_generation(*generation, scope);
  } else {
    return std::holds_alternative<Break>(form) ? Flow::kBreak : Flow::kContinue;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_if(const If& statement, const ScopePtr& scope) {
  for (const If::Branch& branch : statement.branches) {
    if (truth(*branch.test, scope)) return execute(branch.body, scope);
  }
  return execute(statement.otherwise, scope);
}

void Evaluator::run_set(const Target& target, Value value, const ScopePtr& scope) {
  if (target.is_tuple) {
    const Values values = items_of(rendering_, value);
    if (values.size() != target.parts.size()) {
      rendering_.refuse(fmt::format("expected {} values to unpack, found {}", target.parts.size(), values.size()));
    }
    for (std::size_t i = 0; i < values.size(); ++i) run_set(target.parts[i], values[i], scope);
    return;
  }
  if (target.member.empty()) return scope->set(target.name, std::move(value));
  std::size_t num_looked_at = 0;
  const Value* const owner = scope->find(target.name, num_looked_at);
  auto* const members = owner == nullptr ? nullptr : dynamic_cast<Namespace*>(owner->object());
  if (members == nullptr) {
    rendering_.refuse(fmt::format("'{}' is not a namespace, so its '{}' cannot be set", target.name, target.member));
  }
  members->set(rendering_, target.member, std::move(value));
}

// The body is a macro of its own, as in transformers: names set in it end with it.
void Evaluator::run_generation(const Generation& generation, const ScopePtr& scope) {
  if (output_ != &chat_.text) chat_.generated_is_exact = false;
  const std::string text = captured(generation.body, std::make_shared<Scope>(scope));
  chat_.generated.push_back({chat_.text.size(), chat_.text.size() + text.size()});
  *output_ += text;
  check_output();
}

Evaluator::Flow Evaluator::run_with(const With& with, const ScopePtr& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  for (std::size_t i = 0; i < with.targets.size(); ++i) {
    run_set(with.targets[i], evaluate(*with.values[i], scope), inner);
  }
  return execute(with.body, inner);
}

std::string Evaluator::captured(const Block& block, const ScopePtr& scope) {
  std::string text;
  std::string* const outer = std::exchange(output_, &text);
  execute(block, scope);
  output_ = outer;
  return text;
}

void Evaluator::write(const Value& value) {
  append_str(rendering_, *output_, value);
  check_output();
}

void Evaluator::check_output() {
  const std::size_t most = rendering_.options().limits.output_bytes;
  if (output_->size() > most) rendering_.refuse(fmt::format("the text grows beyond {} bytes", most));
}

}  // namespace tessera::internal::jinja
