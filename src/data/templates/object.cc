#include "data/templates/object.h"

#include <fmt/format.h>

#include "data/templates/attributes.h"
#include "data/templates/python_text.h"
#include "data/templates/rendering.h"

namespace tessera::internal::jinja {

void Object::append_repr(Rendering& rendering, std::string&) const {
  // Python would print an address, another one each time.
  rendering.refuse(fmt::format("a {} has no text", type_name()));
}
Value Object::call(Rendering& rendering, Arguments) {
  rendering.refuse(fmt::format("'{}' is not callable", type_name()));
}

void Namespace::append_repr(Rendering& rendering, std::string& text) const {
  text += "<Namespace ";
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : members_) entries.emplace_back(rendering.text(name), value);
  append_dict_repr(rendering, text, entries);
  text += ">";
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

Value Function::call(Rendering& rendering, Arguments arguments) {
  return body_(rendering, arguments);
}
Value Method::call(Rendering& rendering, Arguments arguments) {
  return call_method(rendering, body_, name_, self_, std::move(arguments));
}

void Range::append_repr(Rendering&, std::string& text) const {
  text +=
      step_ == 1 ? fmt::format("range({}, {})", start_, stop_) : fmt::format("range({}, {}, {})", start_, stop_, step_);
}
std::optional<Values> Range::items(Rendering& rendering) {
  rendering.spend(length_);
  Values values;
  for (std::size_t i = 0; i < length_; ++i) values.push_back(*item(rendering, i));
  return values;
}
std::optional<Value> Range::item(Rendering&, std::size_t index) const {
  return Value(start_ + static_cast<std::int64_t>(index) * step_);
}

void DictView::append_repr(Rendering& rendering, std::string& text) const {
  text += fmt::format("{}(", type_);
  append_list_repr(rendering, text, items_);
  text += ")";
}

std::optional<Values> Iterator::items(Rendering& rendering) {
  rendering.spend(items_.size() - next_);
  Values left(items_.begin() + static_cast<std::ptrdiff_t>(next_), items_.end());
  next_ = items_.size();
  return left;
}
std::optional<Value> Iterator::next() {
  if (next_ == items_.size()) return std::nullopt;
  return items_[next_++];
}

std::optional<Value> Cycler::attribute(Rendering& rendering, std::string_view name) {
  if (name == "current") return items_[at_];
  if (name == "next") {
    return rendering.callback([this](Rendering&, const Arguments&) {
      const Value value = items_[at_];
      at_ = (at_ + 1) % items_.size();
      return value;
    });
  }
  if (name == "reset") {
    return rendering.callback([this](Rendering&, const Arguments&) {
      at_ = 0;
      return Value();
    });
  }
  return std::nullopt;
}

Value Joiner::call(Rendering& rendering, Arguments) {
  return std::exchange(is_used_, true) ? separator_ : rendering.text("");
}

}  // namespace tessera::internal::jinja
