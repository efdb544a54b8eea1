// Python values as templates see them: None, True, 3, 1.5, "text", [1, 2], (1, 2), {"a": 1}, what is undefined, and
// objects such as namespaces and macros.
//
// Values are small and copied freely. Texts, lists and dicts never change (the sandbox refuses append and the like), so
// copies share them. Objects belong to the rendering that made them. Make values by Rendering (rendering.h), which
// counts what they take.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::internal::jinja {

class Object;
class Rendering;
class Value;
struct Function;
struct Dict;
using Values = std::vector<Value>;
using NamedValues = std::vector<std::pair<std::string, Value>>;
using Entries = std::vector<std::pair<Value, Value>>;

inline constexpr const char* kBeyond64Bits = "whole numbers beyond 64 bits are not supported";

struct None {};
struct Undefined {
  std::shared_ptr<const std::string> why;  // "'user' is undefined"
};
struct Text {
  std::string text;
  bool is_markup = false;  // of the filter safe: escapes what is added to it by +
};
struct List {
  Values items;
  bool is_tuple;
  std::size_t depth;  // levels of nesting, 1 for a list of texts
};

class Value {
 public:
  Value() : form_(None{}) {}
  explicit Value(bool value) : form_(value) {}
  explicit Value(std::int64_t value) : form_(value) {}
  explicit Value(double value) : form_(value) {}
  explicit Value(std::string text, bool is_markup = false)
      : form_(std::make_shared<const Text>(Text{std::move(text), is_markup})) {}
  explicit Value(List list) : form_(std::make_shared<const List>(std::move(list))) {}
  explicit Value(std::shared_ptr<const Dict> dict) : form_(std::move(dict)) {}
  explicit Value(Object* object) : form_(object) {}
  explicit Value(const char*) = delete;  // would be a bool
  static Value undefined(std::string why);
  static Value count(std::size_t number) { return Value(static_cast<std::int64_t>(number)); }

  bool is_none() const { return std::holds_alternative<None>(form_); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(form_); }
  bool is_bool() const { return std::holds_alternative<bool>(form_); }
  bool is_true() const { return is_bool() && std::get<bool>(form_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(form_); }  // not True and False
  bool is_real() const { return std::holds_alternative<double>(form_); }
  bool is_number() const { return is_bool() || is_integer() || is_real(); }
  bool is_markup() const;

  // Nothing, or null, where it is something else.
  std::optional<std::int64_t> integer() const;  // of True and False, too, as in Python
  std::optional<double> number() const;
  const std::string* text() const;
  const List* list() const;  // or a tuple
  const Dict* dict() const;
  Object* object() const;
  const std::string& why_undefined() const { return *std::get<Undefined>(form_).why; }

  std::size_t depth() const;           // 0 for what holds nothing
  std::string_view type_name() const;  // Python's: "str", "NoneType"

 private:
  explicit Value(Undefined undefined) : form_(std::move(undefined)) {}

  std::variant<None, Undefined, bool, std::int64_t, double, std::shared_ptr<const Text>, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, Object*>
      form_;
};

struct Dict {
  Entries entries;  // in the order of their making; keys are texts or whole numbers, and unique
  std::size_t depth;

  const Value* find(std::string_view key) const;
  const Value* find(const Value& key) const;
};

struct Arguments {
  Values positional = {};
  NamedValues named = {};
};

// Values with an identity. A rendering owns them.
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
  Sequence(Values items, bool is_generator) : items_(std::move(items)), is_generator_(is_generator) {}
  std::string_view type_name() const override { return is_generator_ ? "generator" : "range or view of a dict"; }
  bool is_generator() const { return is_generator_; }
  std::size_t length() const { return items_.size(); }
  Values take(std::size_t most);  // the first items, which leave a generator

 private:
  Values items_;
  bool is_generator_;
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
