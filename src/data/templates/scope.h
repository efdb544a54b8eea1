// The names that a part of a template sees: its own, then those around it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "data/templates/value.h"

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

}  // namespace tessera::internal::jinja
