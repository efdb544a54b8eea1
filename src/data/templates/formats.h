// Python's two ways to format: "%-5s|%03d" % values, and "{:>5}".format(value).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// `values`: a tuple of them, a dict for %(name)s, or a single one.
std::string format_percent(Rendering& rendering, std::string_view format, const Value& values);
std::string format_braces(Rendering& rendering, std::string_view format, const Arguments& arguments);

// What fills a field: [[fill]align][sign][#][0][width][,][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // '<', '>', '^', '=': before the digits; none: by the kind of value
  char sign = '-';
  bool is_alternate = false;
  char grouping = '\0';  // ',' or '_'
  std::size_t width = 0;
  std::optional<std::size_t> precision = {};
  char type = '\0';
};
std::string format_value(Rendering& rendering, const Value& value, const FormatSpec& spec);

}  // namespace tessera::internal::jinja
