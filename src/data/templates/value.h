// Python values as templates see them: None, True, 3, 1.5, "text", [1, 2], (1, 2), {"a": 1}, what is undefined, and
// objects such as namespaces and macros.
//
// Values are small and copied freely. Texts, lists, tuples and dicts never change (the sandbox refuses append and the
// like), so copies share them. Objects belong to the rendering that made them. Make values by Rendering (rendering.h),
// which counts what they take.
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

struct None {};
struct Undefined {
  std::shared_ptr<const std::string> why;  // "'user' is undefined"
};
struct List {
  Values items;
  std::size_t depth;  // levels of nesting, 1 for a list of texts
};
struct Tuple {
  Values items;
  std::size_t depth;
  bool is_group = false;  // of groupby: item 0 is also called grouper, item 1 list
};

class Value {
 public:
  Value() : form_(None{}) {}
  explicit Value(bool value) : form_(value) {}
  explicit Value(std::int64_t value) : form_(value) {}
  explicit Value(double value) : form_(value) {}
  explicit Value(std::string text) : form_(std::make_shared<const std::string>(std::move(text))) {}
  explicit Value(std::shared_ptr<const List> list) : form_(std::move(list)) {}
  explicit Value(std::shared_ptr<const Tuple> tuple) : form_(std::move(tuple)) {}
  explicit Value(std::shared_ptr<const Dict> dict) : form_(std::move(dict)) {}
  explicit Value(Object* object) : form_(object) {}
  explicit Value(const char*) = delete;  // would be a bool
  static Value undefined(std::string why) {
    return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
  }
  // What the filters safe and escape give: a text that escapes what is added to it.
  static Value markup(std::string text) {
    Value value(std::move(text));
    value.is_markup_ = true;
    return value;
  }

  bool is_none() const { return std::holds_alternative<None>(form_); }
  bool is_bool() const { return std::holds_alternative<bool>(form_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(form_); }  // not True and False
  bool is_real() const { return std::holds_alternative<double>(form_); }
  bool is_number() const { return is_bool() || is_integer() || is_real(); }
  bool is_undefined() const { return std::holds_alternative<Undefined>(form_); }
  bool is_true() const { return is_bool() && std::get<bool>(form_); }

  // Nothing, or null, where it is something else.
  std::optional<std::int64_t> integer() const;  // of True and False, too, as in Python
  std::optional<double> number() const;
  bool is_markup() const { return is_markup_; }
  const std::string* text() const { return pointer<std::string>(); }
  const List* list() const { return pointer<List>(); }
  const Tuple* tuple() const { return pointer<Tuple>(); }
  const Dict* dict() const { return pointer<Dict>(); }
  const Values* items() const;  // of a list or a tuple
  Object* object() const;
  const std::string& why_undefined() const { return *std::get<Undefined>(form_).why; }

  std::size_t depth() const;               // 0 for what holds nothing
  std::string_view type_name() const;      // Python's: "str", "NoneType"
  bool is_same(const Value& other) const;  // Python's `is`

 private:
  explicit Value(Undefined undefined) : form_(std::move(undefined)) {}

  template <typename T>
  const T* pointer() const {
    const auto* shared = std::get_if<std::shared_ptr<const T>>(&form_);
    return shared == nullptr ? nullptr : shared->get();
  }

  std::variant<None, Undefined, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Tuple>, std::shared_ptr<const Dict>, Object*>
      form_;
  bool is_markup_ = false;
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;  // in the order of their making, keys unique
  std::size_t depth;

  const Value* find(std::string_view key) const;
};

// The arguments of a call.
struct Arguments {
  Values positional = {};
  std::vector<std::pair<std::string, Value>> named = {};
};

}  // namespace tessera::internal::jinja
