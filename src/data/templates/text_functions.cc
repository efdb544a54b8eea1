// Filters and methods of texts. Filters take other values as what str() makes of them; methods are found at texts only.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/text.h"
#include "data/templates/functions.h"
#include "data/templates/operators.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/templates/text_parts.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

constexpr std::size_t kCaseCost = 16;  // characters beyond ASCII are looked up in tables
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

// A number of occurrences; negative: all of them.
std::size_t most_of(const Call& call, std::size_t index) {
  const std::int64_t most = call.integer(index, -1);
  return most < 0 ? kAll : static_cast<std::size_t>(most);
}

template <auto change>
Value change_text(const Call& call) {
  const std::string text = call.self_text();
  call.rendering.spend_repeated(text.size(), kCaseCost);
  return call.rendering.text(change(text));
}

// Words end where no letter stands: "they're" is "They'Re".
std::string python_title(std::string_view text) {
  return title_case(text, [](char32_t c) { return !has_case(c); });
}

// Jinja2's own title.
std::string jinja_title(std::string_view text) {
  return title_case(text,
                    [](char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c); });
}

template <bool at_left, bool at_right>
Value strip_text(const Call& call) {
  const std::string all = call.self_text(), set = call.text(0, "");
  const bool has_set = !call.value_or(0, Value()).is_none();
  if (has_set) call.rendering.spend_repeated(set.size(), all.size());
  std::string_view text = all;
  if (at_left) text = has_set ? strip_set_left(text, set) : strip_left(text);
  if (at_right) text = has_set ? strip_set_right(text, set) : strip_right(text);
  return call.rendering.text(std::string(text));
}

Value replace_text(const Call& call) {
  const std::string text = call.self_text(), old = call.text(0, ""), with = call.text(1, "");
  if (old.empty()) call.refuse("of an empty text is not supported");
  const std::size_t most = most_of(call, 2);
  call.rendering.spend_text(text.size());
  call.rendering.spend_repeated(with.size(), count_of(text, old, most));
  return call.rendering.text(replaced(text, old, with, most));
}

Value indent_text(const Call& call) {
  call.rendering.check_defined(call.self);
  if (call.self.text() == nullptr) call.refuse("expects a text");
  const auto width = static_cast<std::size_t>(std::max<std::int64_t>(call.integer(0, 4), 0));
  const std::string text = call.self_text() + "\n";
  const std::vector<std::string_view> lines = lines_of(text);
  call.rendering.spend_repeated(width, lines.size());
  const std::string margin(width, ' ');
  std::string all = call.boolean(1, false) ? margin : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) all += "\n" + (call.boolean(2, false) || !lines[i].empty() ? margin : "");
    all += lines[i];
  }
  return call.rendering.text(std::move(all));
}

// int(value), else int(float(value)), else the default.
Value to_integer(const Call& call) {
  const Value preset = call.has(0) ? call.at(0) : Value(std::int64_t{0});
  if (call.self.integer()) return Value(*call.self.integer());
  std::optional<double> real = call.self.number();
  if (call.self.text() != nullptr) {
    const std::string all = call.self_text();
    std::string_view digits = strip_left(strip_right(all));
    if (digits.find('_') != std::string_view::npos) call.refuse("of digits with _ is not supported");
    if (digits.starts_with('+')) digits.remove_prefix(1);
    if (digits.starts_with('+') || digits.starts_with("-+")) return preset;
    if (const auto whole = parse_integer(digits)) return Value(static_cast<std::int64_t>(*whole));
    const bool has_digits_only = !digits.empty() && digits.find_first_not_of("-0123456789") == std::string_view::npos;
    if (has_digits_only && digits.rfind('-') + 1 < 2 && digits != "-") call.rendering.refuse(kBeyond64Bits);
    real = parse_real(digits);
  }
  if (!real || !(std::abs(*real) < std::numeric_limits<double>::infinity())) return preset;
  if (std::abs(*real) >= 9.2e18) call.rendering.refuse(kBeyond64Bits);
  return Value(static_cast<std::int64_t>(*real));
}

Value list_of_parts(const Call& call, const std::vector<std::string_view>& parts) {
  Values texts;
  for (const std::string_view part : parts) texts.push_back(call.rendering.text(std::string(part)));
  return call.rendering.list(std::move(texts));
}

template <bool from_right>
Value split_text(const Call& call) {
  const std::string text = call.self_text(), separator = call.text(0, "");
  const std::size_t most = most_of(call, 1);
  call.rendering.spend(text.size() / 4);  // parts of one character each would take more
  if (call.value_or(0, Value()).is_none()) {
    if (from_right && most != kAll) call.refuse("at white space is not supported: give it a text to split at");
    return list_of_parts(call, words_of(text, most));
  }
  if (separator.empty()) call.refuse("needs a separator that is not empty");
  return list_of_parts(call, split_at(text, separator, most, from_right));
}

Value split_lines(const Call& call) {
  const std::string text = call.self_text();
  call.rendering.spend(text.size() / 4);
  return list_of_parts(call, lines_of(text));
}

Value join_texts(const Call& call) {
  const std::string between = call.self_text();
  std::string all;
  bool is_first = true;
  for (const Value& item : items_of(call.rendering, call.at(0))) {
    call.rendering.check_defined(item);
    if (item.text() == nullptr) call.refuse(fmt::format("expects texts, found one of type '{}'", item.type_name()));
    call.rendering.spend_text(between.size() + item.text()->size());
    if (!std::exchange(is_first, false)) all += between;
    all += *item.text();
  }
  return call.rendering.text(std::move(all));
}

template <bool is_prefix>
Value remove_affix(const Call& call) {
  const std::string affix = call.text(0, "");
  std::string text = call.self_text();
  if (is_prefix && text.starts_with(affix)) text.erase(0, affix.size());
  if (!is_prefix && text.ends_with(affix)) text.resize(text.size() - affix.size());
  return call.rendering.text(std::move(text));
}

// One text, or a tuple of them.
template <bool is_prefix>
Value has_affix(const Call& call) {
  const std::string text = call.self_text();
  const List* const several = call.at(0).list();
  for (const Value& affix : several != nullptr ? several->items : Values{call.at(0)}) {
    call.rendering.check_defined(affix);
    if (affix.text() == nullptr || (several != nullptr && !several->is_tuple)) {
      call.refuse("expects a text or a tuple of texts");
    }
    if (is_prefix ? text.starts_with(*affix.text()) : text.ends_with(*affix.text())) return Value(true);
  }
  return Value(false);
}

// The index of the first or the last character of a part; -1: it is not there.
template <bool from_right>
Value find_part(const Call& call) {
  const std::string text = call.self_text(), part = call.text(0, "");
  call.rendering.spend_text(text.size());
  const std::size_t at = from_right ? text.rfind(part) : text.find(part);
  if (at == std::string::npos) return Value(std::int64_t{-1});
  return Value::count(num_characters(std::string_view(text).substr(0, at)));
}

Value index_of_part(const Call& call) {
  Value place = find_part<false>(call);
  if (*place.integer() < 0) call.refuse("does not find the text");
  return place;
}

Value count_parts(const Call& call) {
  const std::string text = call.self_text(), part = call.text(0, "");
  if (part.empty()) call.refuse("of an empty text is not supported");
  return Value::count(count_of(text, part, kAll));
}

// "{} {name} {0}".format(...), without conversions and widths.
Value format_text(const Call& call) {
  const std::string format = call.self_text();
  std::string all;
  std::size_t next = 0;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '{' && format[at] != '}') {
      all += format[at];
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == format[at]) {
      all += format[at++];
      continue;
    }
    const std::size_t end = format.find('}', at);
    if (format[at] == '}' || end == std::string::npos) call.refuse("expects { and } in pairs");
    const std::string field = format.substr(at + 1, end - at - 1);
    if (field.find_first_of("!:.[{") != std::string::npos) {
      call.refuse(fmt::format("supports no more than {{}}, {{0}} and {{name}}, found {{{}}}", printable(field, 60)));
    }
    const auto number = field.empty() ? std::optional<long long>(next++) : parse_integer(field);
    const auto& named = call.arguments.named;
    const auto found = std::ranges::find(named, field, &NamedValues::value_type::first);
    const auto& positional = call.arguments.positional;
    if (number && *number >= 0 && static_cast<std::size_t>(*number) < positional.size()) {
      append_str(call.rendering, all, positional[static_cast<std::size_t>(*number)]);
    } else if (!number && found != named.end()) {
      append_str(call.rendering, all, found->second);
    } else {
      call.refuse(fmt::format("has no value for {{{}}}", printable(field, 60)));
    }
    at = end;
  }
  return call.rendering.text(std::move(all));
}

}  // namespace

Functions text_filters() {
  static constexpr Function kFilters[] = {
      {"upper", "", change_text<upper_case>},
      {"lower", "", change_text<lower_case_of>},
      {"capitalize", "", change_text<capitalized>},
      {"title", "", change_text<jinja_title>},
      {"trim", "chars?", strip_text<true, true>},
      {"replace", "old new count?", replace_text},
      {"indent", "width? first? blank?", indent_text},
      {"int", "default?", to_integer},
      {"safe", "", [](const Call& call) { return Value(str_of(call.rendering, call.self), /*is_markup=*/true); }},
      {"string", "",
       [](const Call& call) {
         return call.self.text() != nullptr ? call.self : call.rendering.text(call.self_text());
       }},
  };
  return kFilters;
}

Functions text_methods() {
  static constexpr Function kMethods[] = {
      {"upper", "", change_text<upper_case>},
      {"lower", "", change_text<lower_case_of>},
      {"capitalize", "", change_text<capitalized>},
      {"title", "", change_text<python_title>},
      {"strip", "chars?", strip_text<true, true>},
      {"lstrip", "chars?", strip_text<true, false>},
      {"rstrip", "chars?", strip_text<false, true>},
      {"replace", "old new count?", replace_text},
      {"split", "sep? maxsplit?", split_text<false>},
      {"rsplit", "sep? maxsplit?", split_text<true>},
      {"splitlines", "", split_lines},
      {"join", "iterable", join_texts},
      {"removeprefix", "prefix", remove_affix<true>},
      {"removesuffix", "suffix", remove_affix<false>},
      {"startswith", "prefix", has_affix<true>},
      {"endswith", "suffix", has_affix<false>},
      {"find", "sub", find_part<false>},
      {"rfind", "sub", find_part<true>},
      {"index", "sub", index_of_part},
      {"count", "sub", count_parts},
      {"format", "...", format_text},
  };
  return kMethods;
}

}  // namespace tessera::internal::jinja
