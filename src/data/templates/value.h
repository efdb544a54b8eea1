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
class Value;
struct Dict;
using Values = std::vector<Value>;
using NamedValues = std::vector<std::pair<std::string, Value>>;
using Entries = std::vector<std::pair<Value, Value>>;

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

}  // namespace tessera::internal::jinja
