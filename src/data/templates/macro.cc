// Macros and call blocks.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "data/templates/evaluator.h"

namespace tessera::internal::jinja {
namespace {

class Macro : public Object {
 public:
  Macro(Evaluator& evaluator, const MacroDefinition& definition, ScopePtr scope)
      : evaluator_(evaluator), definition_(definition), scope_(std::move(scope)) {}

  std::string_view type_name() const override { return "Macro"; }
  bool is_callable() const override { return true; }

  Value call(Rendering& rendering, Arguments arguments) override {
    const DepthGuard guard(rendering);
    const auto scope = std::make_shared<Scope>(scope_);
    bind(rendering, std::move(arguments), scope);
    return rendering.text(evaluator_.captured(definition_.body, scope));
  }

  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override {
    const Signature& signature = definition_.signature;
    if (name == "name") return definition_.name.empty() ? Value() : rendering.text(definition_.name);
    if (name == "catch_kwargs") return Value(signature.uses_kwargs);
    if (name == "catch_varargs") return Value(signature.uses_varargs);
    if (name == "caller") return Value(signature.uses_caller);
    if (name != "arguments") return std::nullopt;
    Values names;
    for (const std::string& each : signature.names) names.push_back(rendering.text(each));
    return rendering.tuple(std::move(names));
  }

 private:
  void bind(Rendering& rendering, Arguments arguments, const ScopePtr& scope) const {
    const Signature& signature = definition_.signature;
    const std::size_t num_names = signature.names.size();
    Values& positional = arguments.positional;
    if (positional.size() > num_names && !signature.uses_varargs) {
      rendering.refuse(fmt::format("macro '{}' takes not more than {} arguments, found {}", definition_.name, num_names,
                                   positional.size()));
    }
    const std::size_t first_default = num_names - signature.defaults.size();
    for (std::size_t i = 0; i < num_names; ++i) {
      const std::string& name = signature.names[i];
      std::optional<Value> value;
      if (i < positional.size()) {
        value = positional[i];
      } else {
        value = take(arguments, name);
      }
      if (!value && i >= first_default) value = evaluator_.evaluate(*signature.defaults[i - first_default], scope);
      scope->set(name,
                 value ? *std::move(value) : Value::undefined(fmt::format("parameter '{}' was not provided", name)));
    }
    if (signature.uses_caller) {
      auto caller = take(arguments, "caller");
      scope->set("caller", caller ? *std::move(caller) : Value::undefined("no caller is defined"));
    }
    if (signature.uses_kwargs) {
      std::vector<std::pair<Value, Value>> entries;
      for (auto& [name, value] : arguments.named) entries.emplace_back(rendering.text(name), std::move(value));
      scope->set("kwargs", rendering.dict(std::move(entries)));
    } else if (!arguments.named.empty()) {
      rendering.refuse(fmt::format("macro '{}' takes no keyword argument '{}'", definition_.name,
                                   printable(arguments.named[0].first, 60)));
    }
    if (signature.uses_varargs) {
      const std::size_t num_bound = std::min(num_names, positional.size());
      scope->set("varargs", rendering.tuple(
                                Values(positional.begin() + static_cast<std::ptrdiff_t>(num_bound), positional.end())));
    }
  }

  static std::optional<Value> take(Arguments& arguments, std::string_view name) {
    const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                    [&](const auto& named) { return named.first == name; });
    if (found == arguments.named.end()) return std::nullopt;
    std::optional<Value> value(std::move(found->second));
    arguments.named.erase(found);
    return value;
  }

  Evaluator& evaluator_;
  const MacroDefinition& definition_;
  ScopePtr scope_;
};

}  // namespace

void Evaluator::define(const MacroDefinition& macro, const ScopePtr& scope) {
  scope->set(macro.name, rendering_.make<Macro>(*this, macro, scope));
}

void Evaluator::run_call_block(const CallBlock& block, const ScopePtr& scope) {
  Arguments given;
  given.named.emplace_back("caller", rendering_.make<Macro>(*this, *block.caller, scope));
  write(call_function(std::get<CallExpression>(block.call->form), std::move(given), scope));
}

}  // namespace tessera::internal::jinja
