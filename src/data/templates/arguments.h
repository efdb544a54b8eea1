// The parameters of one of our functions, filled by a call as Python fills them.
//
//   const Parameters given(rendering, "indent", arguments, {"width", "first", "blank"});
//   const std::int64_t width = given.integer(0, 4);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

class Parameters {
 public:
  // Refuses arguments that are too many, unknown, given twice, or missing among the first `num_required`.
  Parameters(Rendering& rendering, std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names, std::size_t num_required = 0);

  bool has(std::size_t index) const { return values_[index] != nullptr; }
  const Value* find(std::size_t index) const { return values_[index]; }
  const Value& at(std::size_t index) const { return *values_[index]; }  // that has()
  // Absent, or None: the default.
  Value value_or(std::size_t index, Value preset) const;
  std::int64_t integer(std::size_t index, std::int64_t preset) const;
  bool boolean(std::size_t index, bool preset) const;
  std::string text(std::size_t index, std::string preset) const;  // of a text only

 private:
  static constexpr std::size_t kMost = 6;

  [[noreturn]] void refuse(const std::string& mistake) const;
  bool is_absent(std::size_t index) const { return values_[index] == nullptr || values_[index]->is_none(); }

  Rendering& rendering_;
  std::string_view function_;
  std::string_view names_[kMost] = {};
  const Value* values_[kMost] = {};
};

}  // namespace tessera::internal::jinja
