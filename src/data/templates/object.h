// Values with an identity: namespaces, sequences that are no lists, functions, loops and macros. A rendering owns them.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "data/templates/value.h"

namespace tessera::internal::jinja {

class Rendering;
struct Function;

class Object {
 public:
  virtual ~Object() = default;

  virtual std::string_view type_name() const = 0;
  // Nothing: there is no such attribute.
  virtual std::optional<Value> attribute(Rendering&, std::string_view) { return std::nullopt; }
  virtual Value call(Rendering& rendering, const Arguments& arguments);  // refuses
};

// namespace(count=0): {% set ns.count = ns.count + 1 %} is seen outside of loops.
class Namespace : public Object {
 public:
  explicit Namespace(NamedValues members) : members_(std::move(members)) {}
  std::string_view type_name() const override { return "Namespace"; }
  std::optional<Value> attribute(Rendering& rendering, std::string_view name) override;
  void set(Rendering& rendering, std::string_view name, Value value);

 private:
  NamedValues members_;
};

// A range, or the keys(), values() or items() of a dict; or what map, select and the like give: items that can be read
// once, without a length.
class Sequence : public Object {
 public:
  enum class Kind { kRange, kView, kGenerator };

  Sequence(Kind kind, Values items) : kind_(kind), items_(std::move(items)) {}
  std::string_view type_name() const override;
  bool is_range() const { return kind_ == Kind::kRange; }
  bool is_generator() const { return kind_ == Kind::kGenerator; }
  std::size_t length() const { return items_.size(); }
  const Value& at(std::size_t index) const { return items_[index]; }
  // The items, which leave a generator.
  Values take();
  std::optional<Value> take_first();

 private:
  Kind kind_;
  Values items_;
};

// A global function, or a method of a value that is not yet called: text.strip
class BoundFunction : public Object {
 public:
  BoundFunction(const Function& function, Value self) : function_(function), self_(std::move(self)) {}
  std::string_view type_name() const override { return "function"; }
  Value call(Rendering& rendering, const Arguments& arguments) override;

 private:
  const Function& function_;
  Value self_;
};

}  // namespace tessera::internal::jinja
