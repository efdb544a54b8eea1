// What templates can call by name: filters (value | name), tests (value is name), methods (value.name()) and global
// functions. All of them are rows of tables:
//
//   {"replace", "old new count?", replace_text}     a question mark: may be absent; "...": it looks itself
//
// Those that are not there are refused by name when a template uses them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// One call: the value that it applies to, and its arguments by parameter.
class Call {
 public:
  // Refuses arguments that are too many, unknown, given twice, or missing.
  Call(Rendering& rendering, const Function& function, const Value& self, const Arguments& arguments);

  Rendering& rendering;
  const Value& self;  // None for global functions
  const Arguments& arguments;

  [[noreturn]] void refuse(const std::string& mistake) const;  // "replace expects ..."
  bool has(std::size_t index) const { return values_[index] != nullptr; }
  const Value& at(std::size_t index) const { return *values_[index]; }  // that has()
  // Absent, or None: the default.
  Value value_or(std::size_t index, Value preset) const;
  std::int64_t integer(std::size_t index, std::int64_t preset) const;
  std::string text(std::size_t index, std::string preset) const;
  bool boolean(std::size_t index, bool preset) const;
  // The value as a text, as most filters of texts take it.
  std::string self_text() const;

 private:
  static constexpr std::size_t kMostParameters = 4;

  bool is_absent(std::size_t index) const { return values_[index] == nullptr || values_[index]->is_none(); }

  std::string_view function_;
  std::array<std::string_view, kMostParameters> names_ = {};
  std::array<const Value*, kMostParameters> values_ = {};
};

struct Function {
  std::string_view name, parameters;
  Value (*body)(const Call& call);
};
using Functions = std::span<const Function>;

Value call_function(Rendering& rendering, const Function& function, const Value& self, const Arguments& arguments);

Value tojson(const Call& call);  // a filter with a file of its own

// The tables, and null where a name is not in one.
Functions text_filters();
Functions list_filters();
Functions tests();
Functions text_methods();
Functions dict_methods();
Functions globals();
const Function* find_function(Functions functions, std::string_view name);

// Refuse unknown names: "the filter 'uper' is not supported, did you mean 'upper'?"
const Function& filter_of(Rendering& rendering, std::string_view name);
const Function& test_of(Rendering& rendering, std::string_view name);
// Null: the value has no such method. Refuses those that Python has and we do not.
const Function* find_method(Rendering& rendering, const Value& value, std::string_view name);

}  // namespace tessera::internal::jinja
