// One value by a FormatSpec, as Python's format() does it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/templates/formats.h"
#include "data/templates/python_text.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

// A mark after each group of digits, from the right; 3 digits, or 4 of other bases.
std::string grouped_digits(const std::string& digits, char mark, std::size_t per_group) {
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % per_group == 0) text += mark;
    text += digits[i];
  }
  return text;
}

std::string padded(Rendering& rendering, const std::string& sign, const std::string& text, const FormatSpec& spec,
                   char preset_align) {
  const char align = spec.align == '\0' ? preset_align : spec.align;
  const std::size_t used = num_characters(sign) + num_characters(text);
  const std::size_t missing = spec.width > used ? spec.width - used : 0;
  rendering.spend_repeated(spec.fill.size(), missing);
  const auto fill = [&](std::size_t count) {
    std::string filled;
    for (std::size_t i = 0; i < count; ++i) filled += spec.fill;
    return filled;
  };
  if (align == '<') return sign + text + fill(missing);
  if (align == '^') return fill(missing / 2) + sign + text + fill(missing - missing / 2);
  return align == '=' ? sign + fill(missing) + text : fill(missing) + sign + text;
}

std::string sign_text(bool is_negative, const FormatSpec& spec) {
  return is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string format_integer(Rendering& rendering, std::int64_t value, const FormatSpec& spec) {
  const std::uint64_t size = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits, prefix;
  std::size_t per_group = 4;
  switch (spec.type) {
    case 'x':
      digits = fmt::format("{:x}", size);
      prefix = "0x";
      break;
    case 'X':
      digits = fmt::format("{:X}", size);
      prefix = "0X";
      break;
    case 'o':
      digits = fmt::format("{:o}", size);
      prefix = "0o";
      break;
    case 'b':
      digits = fmt::format("{:b}", size);
      prefix = "0b";
      break;
    default:
      digits = std::to_string(size);
      per_group = 3;
  }
  if (spec.grouping != '\0') digits = grouped_digits(digits, spec.grouping, per_group);
  return padded(rendering, sign_text(value < 0, spec) + (spec.is_alternate ? prefix : ""), digits, spec, '>');
}

std::string format_real(Rendering& rendering, double value, const FormatSpec& spec) {
  const std::size_t precision = spec.precision.value_or(6);
  if (precision > 10000) rendering.refuse(fmt::format("a precision of {} is too large", precision));
  std::string text;
  const double size = std::fabs(value);
  const char style = static_cast<char>(spec.type | 0x20);
  if (spec.type == '\0' && !spec.precision) {
    text = real_text(size);
  } else if (spec.type == '\0') {
    text = fixed_text(size, 'g', static_cast<int>(std::max<std::size_t>(precision, 1)));
    if (text.find_first_not_of("0123456789") == std::string::npos) text += ".0";
  } else if (spec.type == '%') {
    text = fixed_text(size * 100, 'f', static_cast<int>(precision)) + "%";
  } else {
    text = fixed_text(size, style, static_cast<int>(style == 'g' ? std::max<std::size_t>(precision, 1) : precision));
  }
  if (spec.type == 'E' || spec.type == 'F' || spec.type == 'G') text = upper_case(text);
  if (spec.grouping != '\0') {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    text = grouped_digits(text.substr(0, end), spec.grouping, 3) + text.substr(end);
  }
  return padded(rendering, sign_text(std::signbit(value) && !std::isnan(value), spec), text, spec, '>');
}

std::string format_text(Rendering& rendering, const std::string& value, const FormatSpec& spec) {
  rendering.spend_text(value.size());
  const std::string cut = spec.precision ? value.substr(0, byte_of_character(value, *spec.precision)) : value;
  return padded(rendering, "", cut, spec, '<');
}

}  // namespace

std::string format_value(Rendering& rendering, const Value& value, const FormatSpec& spec) {
  const auto is_one_of = [&](std::string_view types) {
    return spec.type == '\0' || types.find(spec.type) != std::string_view::npos;
  };
  const bool is_plain_bool = value.is_bool() && spec.type == '\0' && spec.width == 0 && !spec.precision;
  if (value.is_number() && !is_plain_bool) {
    if (!value.is_real() && spec.type == 'c') {
      const std::int64_t code = *value.integer();
      if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) rendering.refuse("%c needs a character");
      std::string text;
      append_utf8(text, static_cast<char32_t>(code));
      return padded(rendering, "", text, spec, '<');
    }
    if (!value.is_real() && is_one_of("dxXobn")) {
      if (spec.precision) rendering.refuse("precision not allowed in integer format specifier");
      return format_integer(rendering, *value.integer(), spec);
    }
    if (is_one_of("eEfFgGn%")) return format_real(rendering, *value.number(), spec);
  } else if (is_one_of("s") && (value.text() != nullptr || value.is_undefined() || is_plain_bool)) {
    return format_text(rendering, str_of(rendering, value), spec);
  } else if (value.text() == nullptr && spec.type == '\0' && spec.width == 0 && !spec.precision) {
    return str_of(rendering, value);
  }
  rendering.refuse(fmt::format("the format '{}' does not fit a value of type '{}'", spec.type == '\0' ? ' ' : spec.type,
                               value.type_name()));
}

}  // namespace tessera::internal::jinja
