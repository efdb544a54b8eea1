// Methods of texts that change them: case, padding, what is cut off at the ends, replacements.
#include <fmt/format.h>

#include <string>

#include "data/templates/arguments.h"
#include "data/templates/attributes.h"
#include "data/templates/formats.h"
#include "data/templates/text_parts.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

// Upper and lower case of characters beyond ASCII are looked up in tables.
constexpr std::size_t kCaseCost = 16;

template <auto change>
Value change_case(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters none(rendering, "this method", arguments, {});
  rendering.spend_repeated(self.text()->size(), kCaseCost);
  return rendering.text(change(*self.text()));
}

enum class Side { kLeft, kRight, kBoth };

template <Side side>
Value strip_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "strip", arguments, {"chars"});
  const bool has_set = given.has(0) && !given.at(0).is_none();
  const std::string set = given.text(0, "");
  std::string_view text = *self.text();
  if (!has_set) {
    if (side != Side::kRight) text = strip_left(text);
    if (side != Side::kLeft) text = strip_right(text);
  } else {
    rendering.spend_repeated(set.size(), text.size());
    if (side != Side::kRight) text = strip_set_left(text, set);
    if (side != Side::kLeft) text = strip_set_right(text, set);
  }
  return rendering.text(std::string(text));
}

Value replace_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "replace", arguments, {"old", "new", "count"}, 2);
  return rendering.text(replaced(rendering, *self.text(), given.text(0, ""), given.text(1, ""), given.integer(2, -1)));
}

Value join_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "join", arguments, {"iterable"}, 1);
  std::string all;
  std::size_t index = 0;
  for (const Value& item : items_of(rendering, given.at(0))) {
    rendering.check_defined(item);
    if (item.text() == nullptr) {
      rendering.refuse(fmt::format("sequence item {}: expected str instance, {} found", index, item.type_name()));
    }
    rendering.spend_text(self.text()->size() + item.text()->size());
    if (index++ > 0) all += *self.text();
    all += *item.text();
  }
  return rendering.text(std::move(all));
}

template <Side side>
Value justify(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "ljust, rjust and center", arguments, {"width", "fillchar"}, 1);
  const std::string fill = given.text(1, " ");
  if (num_characters(fill) != 1) rendering.refuse("the fill character must be exactly one character long");
  return rendering.text(
      padded_text(rendering, *self.text(), given.integer(0, 0), fill, side == Side::kRight, side == Side::kBoth));
}

Value zfill(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "zfill", arguments, {"width"}, 1);
  const std::string& text = *self.text();
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const std::string digits = text.substr(has_sign ? 1 : 0);
  const std::int64_t width = given.integer(0, 0);
  return rendering.text(text.substr(0, has_sign ? 1 : 0) +
                        padded_text(rendering, digits, has_sign && width > 0 ? width - 1 : width, "0", true, false));
}

template <bool is_prefix>
Value remove_affix(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, is_prefix ? "removeprefix" : "removesuffix", arguments, {"affix"}, 1);
  const std::string affix = given.text(0, "");
  std::string text = *self.text();
  if (is_prefix && text.starts_with(affix)) text.erase(0, affix.size());
  if (!is_prefix && !affix.empty() && text.ends_with(affix)) text.resize(text.size() - affix.size());
  return rendering.text(std::move(text));
}

Value format_method(Rendering& rendering, const Value& self, const Arguments& arguments) {
  return rendering.text(format_braces(rendering, *self.text(), arguments));
}

Value format_map(Rendering& rendering, const Value& self, const Arguments& arguments) {
  const Parameters given(rendering, "format_map", arguments, {"mapping"}, 1);
  if (given.at(0).dict() == nullptr) rendering.refuse("format_map expects a dict");
  Arguments named;
  for (const auto& [key, value] : given.at(0).dict()->entries) {
    if (key.text() != nullptr) named.named.emplace_back(*key.text(), value);
  }
  return rendering.text(format_braces(rendering, *self.text(), named));
}

struct NamedMethod {
  std::string_view name;
  Method::Body body;
};

}  // namespace

Method::Body find_text_method(std::string_view name) {
  static constexpr NamedMethod kMethods[] = {
      {"strip", strip_method<Side::kBoth>},
      {"lstrip", strip_method<Side::kLeft>},
      {"rstrip", strip_method<Side::kRight>},
      {"replace", replace_method},
      {"join", join_method},
      {"upper", change_case<upper_case>},
      {"lower", change_case<lower_case_of>},
      {"title", change_case<title_case>},
      {"capitalize", change_case<capitalized>},
      {"swapcase", change_case<swapped_case>},
      {"ljust", justify<Side::kLeft>},
      {"rjust", justify<Side::kRight>},
      {"center", justify<Side::kBoth>},
      {"zfill", zfill},
      {"removeprefix", remove_affix<true>},
      {"removesuffix", remove_affix<false>},
      {"format", format_method},
      {"format_map", format_map},
  };
  for (const NamedMethod& method : kMethods) {
    if (method.name == name) return method.body;
  }
  return nullptr;
}

}  // namespace tessera::internal::jinja
