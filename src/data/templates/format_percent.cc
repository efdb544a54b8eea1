// "%-5s|%03d" % values
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "data/templates/compare.h"
#include "data/templates/formats.h"
#include "data/templates/python_text.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

class PercentFormat {
 public:
  PercentFormat(Rendering& rendering, std::string_view format, const Value& values)
      : rendering_(rendering), format_(format), values_(values) {}

  std::string run() {
    std::string text;
    while (at_ < format_.size()) {
      const std::size_t mark = std::min(format_.find('%', at_), format_.size());
      text += format_.substr(at_, mark - at_);
      at_ = mark;
      if (at_ == format_.size()) break;
      ++at_;
      read_field(text);
    }
    const bool is_list_of_values = values_.tuple() != nullptr;
    const bool are_left = is_list_of_values ? num_used_ < values_.tuple()->items.size()
                                            : num_used_ == 0 && values_.dict() == nullptr && values_.list() == nullptr;
    if (are_left) rendering_.refuse("not all arguments converted during string formatting");
    return text;
  }

 private:
  char current() {
    if (at_ >= format_.size()) rendering_.refuse("incomplete format");
    return format_[at_];
  }

  const Value& next_value() {
    const std::size_t index = num_used_++;
    if (const Tuple* tuple = values_.tuple()) {
      if (index < tuple->items.size()) return tuple->items[index];
    } else if (index == 0) {
      return values_;
    }
    rendering_.refuse("not enough arguments for format string");
  }

  const Value& named_value() {
    const std::size_t end = format_.find(')', at_);
    if (end == std::string_view::npos) rendering_.refuse("incomplete format key");
    if (values_.dict() == nullptr) rendering_.refuse("format requires a mapping");
    const std::string name(format_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    const Value* const value = values_.dict()->find(name);
    if (value == nullptr) rendering_.refuse(fmt::format("the values to format have no '{}'", name));
    return *value;
  }

  std::size_t read_size(FormatSpec* spec) {
    if (current() == '*') {
      ++at_;
      const auto size = next_value().integer();
      if (!size) rendering_.refuse("* wants int");
      if (*size < 0 && spec != nullptr) spec->align = '<';
      constexpr auto kMost = static_cast<std::int64_t>(kMostWidth);
      return static_cast<std::size_t>(std::abs(std::clamp(*size, -kMost, kMost)));
    }
    std::size_t size = 0;
    for (; current() >= '0' && current() <= '9'; ++at_) {
      size = std::min(size * 10 + static_cast<std::size_t>(current() - '0'), kMostWidth);
    }
    return size;
  }

  void read_field(std::string& text) {
    const Value* named = current() == '(' ? &named_value() : nullptr;
    FormatSpec spec;
    bool has_zeros = false;
    for (; std::string_view("-+ #0").find(current()) != std::string_view::npos; ++at_) {
      if (current() == '-') spec.align = '<';
      if (current() == '+' || (current() == ' ' && spec.sign != '+')) spec.sign = current();
      if (current() == '#') spec.is_alternate = true;
      if (current() == '0') has_zeros = true;
    }
    spec.width = read_size(&spec);
    if (current() == '.') {
      ++at_;
      spec.precision = read_size(nullptr);
    }
    while (current() == 'l' || current() == 'h' || current() == 'L') ++at_;
    spec.type = format_[at_++];
    if (spec.type == '%') {
      text += '%';
      return;
    }
    const Value& value = named != nullptr ? *named : next_value();
    append(text, value, spec, has_zeros);
  }

  void append(std::string& text, const Value& value, FormatSpec spec, bool has_zeros) {
    const bool is_text = spec.type == 's' || spec.type == 'r' || spec.type == 'a';
    const bool is_right = spec.align == '\0';
    if (is_right) spec.align = '>';
    if (is_text || spec.type == 'c') {
      std::string shown;
      if (spec.type == 'r' || spec.type == 'a') {
        append_repr(rendering_, shown, value);
      } else if (spec.type == 'c' && value.integer()) {
        text += format_value(rendering_, value, spec);
        return;
      } else {
        append_str(rendering_, shown, value);
      }
      spec.type = 's';
      text += format_value(rendering_, Value(std::move(shown)), spec);
      return;
    }
    if (has_zeros && is_right) {
      spec.fill = "0";
      spec.align = '=';
    }
    if (std::string_view("diuxXoeEfFgG").find(spec.type) == std::string_view::npos) {
      rendering_.refuse(fmt::format("unsupported format character '{}'", spec.type));
    }
    if (!value.is_number()) {
      rendering_.check_defined(value);
      rendering_.refuse(fmt::format("%{} format: a real number is required, not {}", spec.type, value.type_name()));
    }
    const bool is_decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (is_decimal || spec.type == 'x' || spec.type == 'X' || spec.type == 'o') {
      if (is_decimal) spec.type = 'd';
      text += format_integer_field(value, spec);
    } else {
      text += format_value(rendering_, Value(*value.number()), spec);
    }
  }

  // Here a precision is the least number of digits.
  std::string format_integer_field(const Value& value, FormatSpec spec) {
    if (value.is_real() && spec.type != 'd') {
      rendering_.refuse(fmt::format("%{} format: an integer is required, not float", spec.type));
    }
    if (value.is_real() && !(*value.number() > -9.2e18 && *value.number() < 9.2e18)) {
      rendering_.refuse("whole numbers beyond 64 bits are not supported");
    }
    const std::int64_t number = value.is_real() ? static_cast<std::int64_t>(*value.number()) : *value.integer();
    if (!spec.precision) return format_value(rendering_, Value(number), spec);
    FormatSpec digits = spec;
    digits.width = *std::exchange(digits.precision, {}) + (number < 0 || spec.sign != '-' ? 1 : 0);
    digits.fill = "0";
    digits.align = '=';
    const std::string shown = format_value(rendering_, Value(number), digits);
    FormatSpec field = spec;
    field.precision = {};
    field.type = 's';
    if (field.align == '=') field.align = '>', field.fill = " ";
    return format_value(rendering_, Value(shown), field);
  }

  static constexpr std::size_t kMostWidth = std::size_t{1} << 40;  // refused for its cost

  Rendering& rendering_;
  std::string_view format_;
  const Value& values_;
  std::size_t at_ = 0, num_used_ = 0;
};

}  // namespace

std::string format_percent(Rendering& rendering, std::string_view format, const Value& values) {
  rendering.spend_text(format.size());
  return PercentFormat(rendering, format, values).run();
}

}  // namespace tessera::internal::jinja
