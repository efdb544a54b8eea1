// "{}, {name!r:>5}".format(values)
#include <fmt/format.h>

#include <algorithm>

#include "data/templates/attributes.h"
#include "data/templates/formats.h"
#include "data/templates/python_text.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

constexpr std::size_t kMostFieldWidth = std::size_t{1} << 40;  // refused for its cost

bool is_number_text(std::string_view text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

FormatSpec parse_spec(Rendering& rendering, std::string_view text) {
  FormatSpec spec;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const std::size_t first = text.empty() ? 0 : utf8_length(static_cast<unsigned char>(text[0]));
  if (text.size() > first && first > 0 && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  const auto take = [&](std::string_view symbols) {
    if (text.empty() || symbols.find(text[0]) == std::string_view::npos) return '\0';
    const char symbol = text[0];
    text.remove_prefix(1);
    return symbol;
  };
  const auto take_number = [&] {
    std::size_t number = 0;
    while (const char digit = take("0123456789")) {
      number = std::min(number * 10 + static_cast<std::size_t>(digit - '0'), kMostFieldWidth);
    }
    return number;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.is_alternate = take("#") != '\0';
  if (take("0") != '\0' && spec.align == '\0') {
    spec.fill = "0";
    spec.align = '=';
  }
  spec.width = take_number();
  spec.grouping = take(",_");
  if (take(".") != '\0') spec.precision = take_number();
  spec.type = take("sdxXobeEfFgGn%c");
  if (!text.empty()) rendering.refuse(fmt::format("invalid format specifier '{}'", text));
  return spec;
}

class BraceFormat {
 public:
  BraceFormat(Rendering& rendering, const Arguments& arguments) : rendering_(rendering), arguments_(arguments) {}

  // Fields may stand within the specifier of a field, once.
  std::string run(std::string_view format, int depth) {
    std::string text;
    for (std::size_t at = 0; at < format.size();) {
      const char c = format[at];
      const bool is_doubled = at + 1 < format.size() && format[at + 1] == c;
      if (c != '{' && c != '}') {
        text += c;
        ++at;
      } else if (is_doubled) {
        text += c;
        at += 2;
      } else if (c == '}') {
        rendering_.refuse("single '}' encountered in format string");
      } else {
        const std::size_t end = end_of_field(format, at);
        append_field(text, format.substr(at + 1, end - at - 1), depth);
        at = end + 1;
      }
    }
    return text;
  }

 private:
  std::size_t end_of_field(std::string_view format, std::size_t begin) {
    int open = 0;
    for (std::size_t at = begin; at < format.size(); ++at) {
      if (format[at] == '{') ++open;
      if (format[at] == '}' && --open == 0) return at;
    }
    rendering_.refuse("expected '}' before end of string");
  }

  void append_field(std::string& text, std::string_view field, int depth) {
    if (depth == 0) rendering_.refuse("max string recursion exceeded");
    const std::size_t colon = std::min(field.find_first_of(":!"), field.size());
    Value value = value_of(field.substr(0, colon));
    std::string_view rest = field.substr(colon);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':')) rendering_.refuse("expected ':' after a conversion");
      value = Value(converted(value, rest[1]));
      rest.remove_prefix(2);
    }
    const std::string spec = rest.empty() ? "" : run(rest.substr(1), depth - 1);
    text += format_value(rendering_, value, parse_spec(rendering_, spec));
  }

  std::string converted(const Value& value, char kind) {
    if (kind == 's') return str_of(rendering_, value);
    if (kind != 'r') rendering_.refuse(fmt::format("the conversion !{} is not supported; supported: !r, !s", kind));
    std::string text;
    append_repr(rendering_, text, value);
    return text;
  }

  // "0", "name", "", followed by .attribute and [item].
  Value value_of(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = argument(path.substr(0, end));
    for (std::size_t at = end; at < path.size();) {
      const bool is_item = path[at] == '[';
      const std::size_t stop = is_item ? path.find(']', at) : std::min(path.find_first_of(".[", at + 1), path.size());
      if (stop == std::string_view::npos) rendering_.refuse("expected ']' in a format field");
      const std::string_view name = path.substr(at + 1, stop - at - 1);
      if (!is_item) {
        value = attribute_of(rendering_, value, name);
      } else if (is_number_text(name)) {
        value = item_of(rendering_, value, Value(static_cast<std::int64_t>(std::stoll(std::string(name)))));
      } else {
        value = item_of(rendering_, value, rendering_.text(std::string(name)));
      }
      at = stop + (is_item ? 1 : 0);
    }
    return value;
  }

  Value argument(std::string_view name) {
    if (name.empty() || is_number_text(name)) {
      const std::size_t index = name.empty() ? num_used_++ : std::stoul(std::string(name));
      if (index < arguments_.positional.size()) return arguments_.positional[index];
      rendering_.refuse(fmt::format("replacement index {} out of range for positional args tuple", index));
    }
    for (const auto& [known, value] : arguments_.named) {
      if (known == name) return value;
    }
    rendering_.refuse(fmt::format("the format needs an argument '{}'", name));
  }

  Rendering& rendering_;
  const Arguments& arguments_;
  std::size_t num_used_ = 0;
};

}  // namespace

std::string format_braces(Rendering& rendering, std::string_view format, const Arguments& arguments) {
  rendering.spend_text(format.size());
  return BraceFormat(rendering, arguments).run(format, 2);
}

}  // namespace tessera::internal::jinja
