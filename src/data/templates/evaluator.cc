#include "data/templates/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "data/templates/python.h"

namespace tessera::internal::jinja {
namespace {

// A filter looks at an item when it is asked for, so that it sees what the body has set; loop.last and nextitem ask
// ahead.
class Loop : public Object {
 public:
  using Keeps = std::function<bool(const Value&)>;  // null: all items

  Loop(Values items, Keeps keeps) : items_(std::move(items)), keeps_(std::move(keeps)) {}
  std::string_view type_name() const override { return "LoopContext"; }
  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override;

  bool advance(Rendering& rendering);
  const Value& current() const { return *current_; }

 private:
  void fetch(Rendering& rendering);  // the item after the current one

  Values items_;
  Keeps keeps_;
  std::size_t next_ = 0, index_ = 0;
  std::optional<Value> before_, current_, after_;
  bool is_filtering_ = false;
};

void Loop::fetch(Rendering& rendering) {
  // A filter may run any part of the template, but must not move the loop that waits for it.
  if (is_filtering_) rendering.refuse("the filter of a loop cannot ask for the loop itself");
  while (!after_ && next_ < items_.size()) {
    const Value item = items_[next_++];
    is_filtering_ = true;
    if (keeps_ == nullptr || keeps_(item)) after_ = item;
    is_filtering_ = false;
  }
}

bool Loop::advance(Rendering& rendering) {
  fetch(rendering);
  if (!after_) return false;
  ++index_;
  before_ = std::exchange(current_, std::exchange(after_, std::nullopt));
  return true;
}

std::optional<Value> Loop::attribute(Rendering& rendering, std::string_view name) {
  static constexpr std::array<std::string_view, 4> kUnsupported = {"changed", "cycle", "depth", "depth0"};
  if (std::ranges::find(kUnsupported, name) != kUnsupported.end()) {
    rendering.refuse(fmt::format("loop.{} is not supported", name));
  }
  if (name == "index") return Value::count(index_);
  if (name == "index0") return Value(static_cast<std::int64_t>(index_) - 1);
  if (name == "first") return Value(index_ == 1);
  if (name == "previtem") return before_ ? *before_ : Value::undefined("there is no previous item");
  if (name == "length" || name == "revindex" || name == "revindex0") {
    if (keeps_ != nullptr) rendering.refuse(fmt::format("loop.{} of a loop with a filter is not supported", name));
    return Value::count(items_.size() - (name == "length" ? 0 : name == "revindex" ? index_ - 1 : index_));
  }
  if (name != "last" && name != "nextitem") return std::nullopt;
  fetch(rendering);
  if (name == "last") return Value(!after_);
  return after_ ? *after_ : Value::undefined("there is no next item");
}

class Macro : public Object {
 public:
  Macro(Evaluator& evaluator, const Statement& definition, ScopePtr scope)
      : evaluator_(evaluator), definition_(definition), scope_(std::move(scope)) {}
  std::string_view type_name() const override { return "Macro"; }
  Value call(Rendering&, const Arguments& arguments) override {
    return evaluator_.call_macro(definition_, scope_, arguments);
  }

 private:
  Evaluator& evaluator_;
  const Statement& definition_;
  ScopePtr scope_;
};

}  // namespace

RenderedChat Evaluator::run(const Json& variables) {
  const auto root = std::make_shared<Scope>(nullptr);
  for (const auto& [name, value] : variables.items()) root->set(name, rendering_.of_json(value));
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
  switch (statement.kind) {
    case Statement::Kind::kData:
      write(rendering_.text(statement.text));
      break;
    case Statement::Kind::kPrint:
      write(evaluate(*statement.value, scope));
      break;
    case Statement::Kind::kIf:
      return execute(truth_of(evaluate(*statement.value, scope)) ? statement.body : statement.otherwise, scope);
    case Statement::Kind::kFor:
      loop(statement, scope);
      break;
    case Statement::Kind::kSet:
      assign(*statement.target, evaluate(*statement.value, scope), scope);
      break;
    case Statement::Kind::kCapture:
      capture(statement, scope);
      break;
    case Statement::Kind::kMacro:
      scope->set(statement.text, rendering_.make<Macro>(*this, statement, scope));
      break;
    case Statement::Kind::kGeneration:
      mark_generation(statement.body, scope);
      break;
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

void Evaluator::loop(const Statement& loop, const ScopePtr& scope) {
  Loop::Keeps keeps;
  if (loop.filter != nullptr) {
    keeps = [this, &loop, scope](const Value& item) {
      const auto inner = std::make_shared<Scope>(scope);
      assign(*loop.target, item, inner);
      return truth_of(evaluate(*loop.filter, inner));
    };
  }
  const Value object = rendering_.make<Loop>(items_of(rendering_, evaluate(*loop.value, scope)), keeps);
  auto& state = static_cast<Loop&>(*object.object());
  auto inner = std::make_shared<Scope>(scope);
  while (state.advance(rendering_)) {
    rendering_.spend(1);
    if (inner.use_count() > 1) inner = std::make_shared<Scope>(scope);  // a macro keeps the old one
    inner->clear();
    inner->set("loop", object);
    assign(*loop.target, state.current(), inner);
    if (execute(loop.body, inner) == Flow::kBreak) break;
  }
}

void Evaluator::capture(const Statement& capture, const ScopePtr& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  inner->set(kCaptured, rendering_.text(text_of(capture.body, inner)));
  const Value value = evaluate(*capture.value, inner);
  if (capture.target == nullptr) {
    write(value);
  } else {
    assign(*capture.target, value, scope);
  }
}

// The body is a macro of its own, as in transformers: names set in it end with it.
void Evaluator::mark_generation(const Block& body, const ScopePtr& scope) {
  if (output_ != &chat_.text) chat_.generated_is_exact = false;
  const std::string text = text_of(body, std::make_shared<Scope>(scope));
  chat_.generated.push_back({chat_.text.size(), chat_.text.size() + text.size()});
  write(Value(text));
}

void Evaluator::assign(const Expression& target, Value value, const ScopePtr& scope) {
  if (target.kind == Expression::Kind::kName) return scope->set(target.name, std::move(value));
  if (target.kind == Expression::Kind::kTuple) {
    const Values values = items_of(rendering_, value);
    if (values.size() != target.parts.size()) {
      rendering_.refuse(fmt::format("expected {} values to unpack, found {}", target.parts.size(), values.size()));
    }
    for (std::size_t i = 0; i < values.size(); ++i) assign(*target.parts[i], values[i], scope);
    return;
  }
  const std::string& owner = target.parts[0]->name;
  auto* const members = dynamic_cast<Namespace*>(value_of_name(owner, scope).object());
  if (members == nullptr) {
    rendering_.refuse(fmt::format("'{}' is not a namespace, so its '{}' cannot be set", owner, target.name));
  }
  members->set(rendering_, target.name, std::move(value));
}

Value Evaluator::call_macro(const Statement& macro, const ScopePtr& scope, const Arguments& arguments) {
  const auto inner = std::make_shared<Scope>(scope);
  const std::size_t num_parameters = macro.parameters.size(), num_given = arguments.positional.size();
  if (num_given > num_parameters) {
    rendering_.refuse(
        fmt::format("macro '{}' takes not more than {} arguments, found {}", macro.text, num_parameters, num_given));
  }
  std::size_t num_named = 0;
  for (std::size_t i = 0; i < num_parameters; ++i) {
    const std::string& name = macro.parameters[i];
    const std::size_t num_without_default = num_parameters - macro.defaults.size();
    const auto named = std::ranges::find(arguments.named, name, &NamedValues::value_type::first);
    const bool is_named = i >= num_given && named != arguments.named.end();
    num_named += is_named ? 1 : 0;
    inner->set(name, i < num_given ? arguments.positional[i]
                     : is_named    ? named->second
                     : i >= num_without_default
                         ? evaluate(*macro.defaults[i - num_without_default], inner)
                         : Value::undefined(fmt::format("parameter '{}' was not provided", name)));
  }
  if (num_named < arguments.named.size()) {
    rendering_.refuse(fmt::format("macro '{}' has no other arguments than {}", macro.text, num_parameters));
  }
  return rendering_.text(text_of(macro.body, inner));
}

std::string Evaluator::text_of(const Block& block, const ScopePtr& scope) {
  std::string text;
  std::string* const outer = std::exchange(output_, &text);
  execute(block, scope);
  output_ = outer;
  return text;
}

void Evaluator::write(const Value& value) {
  append_str(rendering_, *output_, value);
  const std::size_t most = rendering_.options().limits.output_bytes;
  if (output_->size() > most) rendering_.refuse(fmt::format("the text grows beyond {} bytes", most));
}

}  // namespace tessera::internal::jinja
