#include "data/templates/object.h"

#include <fmt/format.h>

#include "data/templates/functions.h"
#include "data/templates/rendering.h"

namespace tessera::internal::jinja {

Value Object::call(Rendering& rendering, const Arguments&) {
  rendering.refuse(fmt::format("'{}' object is not callable", type_name()));
}

std::optional<Value> Namespace::attribute(Rendering& rendering, std::string_view name) {
  rendering.spend(members_.size() / 8);
  for (const auto& [known, value] : members_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(Rendering& rendering, std::string_view name, Value value) {
  if (name.starts_with('_')) {
    rendering.refuse(fmt::format("names of a namespace must not begin with _, found '{}'", name));
  }
  rendering.spend(1 + members_.size() / 8);
  for (auto& [known, old] : members_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  members_.emplace_back(name, std::move(value));
}

std::string_view Sequence::type_name() const {
  return kind_ == Kind::kRange ? "range" : kind_ == Kind::kView ? "dict view" : "generator";
}

Values Sequence::take() {
  return is_generator() ? std::exchange(items_, {}) : items_;
}

std::optional<Value> Sequence::take_first() {
  if (items_.empty()) return std::nullopt;
  Value first = items_.front();
  if (is_generator()) items_.erase(items_.begin());
  return first;
}

Value BoundFunction::call(Rendering& rendering, const Arguments& arguments) {
  return call_function(rendering, function_, self_, arguments);
}

}  // namespace tessera::internal::jinja
