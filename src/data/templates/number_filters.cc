// Filters that make or change numbers.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "data/templates/arguments.h"
#include "data/templates/arithmetic.h"
#include "data/templates/filters.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

// Digits with single underscores between them; nothing: something else.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_alnum = [&](std::size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
    };
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || !is_alnum(i - 1) || !is_alnum(i + 1)) {
      return std::nullopt;
    }
  }
  return plain;
}

// int(text, base)
std::optional<std::int64_t> parse_int(Rendering& rendering, std::string_view text, std::int64_t base) {
  const auto plain = without_underscores(strip_left(strip_right(text)));
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  const char mark = digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : ' ';
  const std::int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked != 0 && (base == marked || base == 0)) {
    digits.remove_prefix(2);
    base = marked;
  } else if (base == 0) {
    base = 10;
  }
  if (base < 2 || base > 36 || digits.empty() || digits[0] == '-') return std::nullopt;
  std::uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (result.ec != std::errc() || value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    rendering.refuse("whole numbers beyond 64 bits are not supported");
  }
  return is_negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

// float(text)
std::optional<double> parse_float(std::string_view text) {
  const auto plain = without_underscores(strip_left(strip_right(text)));
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view digits = *plain;
  const bool is_negative = digits.starts_with('-');
  if (is_negative || digits.starts_with('+')) digits.remove_prefix(1);
  const std::string lower = lower_case(digits);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (digits.empty() || lower.find_first_not_of("0123456789.e+-") != std::string::npos || digits[0] == '-') {
      return std::nullopt;
    }
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ptr != digits.data() + digits.size()) return std::nullopt;
    if (result.ec != std::errc()) value = std::strtod(std::string(digits).c_str(), nullptr);
  }
  return is_negative ? -value : value;
}

std::optional<std::int64_t> whole_of(Rendering& rendering, double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::fabs(value) >= 9.2e18) rendering.refuse("whole numbers beyond 64 bits are not supported");
  return static_cast<std::int64_t>(value);
}

Value int_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "int", arguments, {"default", "base"});
  const Value preset = given.has(0) ? given.at(0) : Value(std::int64_t{0});
  if (value.integer()) return Value(*value.integer());
  if (const std::string* text = value.text()) {
    rendering.spend_text(text->size());
    if (const auto whole = parse_int(rendering, *text, given.integer(1, 10))) return Value(*whole);
  }
  const auto real = value.text() != nullptr ? parse_float(*value.text()) : value.number();
  const auto whole = real ? whole_of(rendering, *real) : std::nullopt;
  return whole ? Value(*whole) : preset;
}

Value float_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "float", arguments, {"default"});
  const auto real = value.text() != nullptr ? parse_float(*value.text()) : value.number();
  return real ? Value(*real) : given.has(0) ? given.at(0) : Value(0.0);
}

Value abs_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "abs", arguments, {});
  rendering.check_defined(value);
  if (!value.is_number()) rendering.refuse(fmt::format("bad operand type for abs(): '{}'", value.type_name()));
  if (value.is_real()) return Value(std::fabs(*value.number()));
  return *value.integer() < 0 ? negative(rendering, value) : Value(*value.integer());
}

// round(): half goes to the even neighbour, of the exact value of the float.
double rounded(double value, std::int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < -300) return std::copysign(0.0, value);
  if (precision >= 0) return std::strtod(fixed_text(value, 'f', static_cast<int>(precision)).c_str(), nullptr);
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return std::nearbyint(value / scale) * scale;
}

Value round_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "round", arguments, {"precision", "method"});
  const std::int64_t precision = given.integer(0, 0);
  const std::string method = given.text(1, "common");
  rendering.check_defined(value);
  if (!value.is_number()) rendering.refuse(fmt::format("round expects a number, found '{}'", value.type_name()));
  if (method == "common") {
    if (value.integer() && precision >= 0) return Value(*value.integer());
    const double result = rounded(*value.number(), precision);
    return value.integer() ? Value(whole_of(rendering, result).value_or(0)) : Value(result);
  }
  if (method != "ceil" && method != "floor") rendering.refuse("the method of round must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *value.number() * scale;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Value sum_filter(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "sum", arguments, {"attribute", "start"});
  Value total = given.has(1) ? given.at(1) : Value(std::int64_t{0});
  if (total.text() != nullptr) rendering.refuse("sum() can't sum strings [use ''.join(seq) instead]");
  const bool has_path = given.has(0) && !given.at(0).is_none();
  for (const Value& item : items_of(rendering, value)) {
    total = calculate(rendering, Operation::kAdd, total, has_path ? follow_path(rendering, item, given.at(0)) : item);
  }
  return total;
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable table = {
      {"int", int_filter}, {"float", float_filter}, {"abs", abs_filter}, {"round", round_filter}, {"sum", sum_filter}};
  return table;
}

}  // namespace tessera::internal::jinja
