// Filters and methods of texts. Filters take other values as what str() makes of them; methods are found at texts only.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "data/templates/functions.h"
#include "data/templates/python.h"
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

// Runs of letters capitalized. Which characters are letters is known of ASCII only.
Value title_text(const Call& call) {
  std::string text = call.self_text();
  bool is_inside = false;
  for (char& c : text) {
    const char lower = static_cast<char>(c | 0x20);
    if (static_cast<unsigned char>(c) >= 0x80) call.refuse("of characters beyond ASCII is not supported");
    const bool is_letter = lower >= 'a' && lower <= 'z';
    if (is_letter) c = static_cast<char>(is_inside ? lower : lower - 0x20);
    is_inside = is_letter;
  }
  return call.rendering.text(std::move(text));
}

template <bool at_left, bool at_right>
Value strip_text(const Call& call) {
  const std::string all = call.self_text(), set = call.text(0, "");
  const std::string* const given = call.value_or(0, Value()).is_none() ? nullptr : &set;
  call.rendering.spend_repeated(set.size(), all.size());
  std::string_view text = all;
  if (at_left) text = strip_left(text, given);
  if (at_right) text = strip_right(text, given);
  return call.rendering.text(std::string(text));
}

Value replace_text(const Call& call) {
  const std::string text = call.self_text(), old = call.text(0, ""), with = call.text(1, "");
  if (old.empty()) call.refuse("of an empty text is not supported");
  call.rendering.spend(text.size() / 8);
  const std::vector<std::string_view> parts = split_at(text, old, most_of(call, 2));
  call.rendering.spend_repeated(with.size(), parts.size());
  return call.rendering.text(join(std::vector<std::string>(parts.begin(), parts.end()), with));
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
  if (call.self.integer()) return Value(*call.self.integer());
  std::optional<double> real = call.self.number();
  if (call.self.text() != nullptr) {
    const std::string text = call.self_text();
    std::string_view digits = strip_left(strip_right(text));
    if (digits.find('_') != std::string_view::npos) call.refuse("of digits with _ is not supported");
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
    if (const auto whole = parse_integer(digits)) return Value(static_cast<std::int64_t>(*whole));
    real = parse_real(digits);
  }
  if (!real || !std::isfinite(*real)) return call.has(0) ? call.at(0) : Value(std::int64_t{0});
  if (std::fabs(*real) >= 9.2e18) call.rendering.refuse(kBeyond64Bits);
  return Value(static_cast<std::int64_t>(*real));
}

Value list_of_parts(const Call& call, const std::vector<std::string_view>& parts) {
  Values texts;
  for (const std::string_view part : parts) texts.push_back(call.rendering.text(std::string(part)));
  return call.rendering.list(std::move(texts));
}

Value split_text(const Call& call) {
  const std::string text = call.self_text(), separator = call.text(0, "");
  const std::size_t most = most_of(call, 1);
  call.rendering.spend(text.size() / 4);  // parts of one character each would take more
  if (separator.empty()) call.refuse("needs a text to split at");
  return list_of_parts(call, split_at(text, separator, most));
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

// "{} of {}".format(1, 2)
Value format_text(const Call& call) {
  const std::string format = call.self_text();
  const Values& values = call.arguments.positional;
  const std::vector<std::string_view> parts = split_at(format, "{}", values.size());
  std::string all;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) append_str(call.rendering, all, values[i - 1]);
    if (parts[i].find_first_of("{}") != std::string_view::npos) call.refuse("supports one {} per value only: use ~");
    all += parts[i];
  }
  return call.rendering.text(std::move(all));
}

}  // namespace

Functions text_filters() {
  static constexpr Function kFilters[] = {
      {"upper", "", change_text<upper_case>},
      {"lower", "", change_text<lower_case_of>},
      {"capitalize", "", change_text<capitalized>},
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
      {"title", "", title_text},
      {"strip", "chars?", strip_text<true, true>},
      {"lstrip", "chars?", strip_text<true, false>},
      {"rstrip", "chars?", strip_text<false, true>},
      {"replace", "old new count?", replace_text},
      {"split", "sep? maxsplit?", split_text},
      {"join", "iterable", join_texts},
      {"startswith", "prefix", has_affix<true>},
      {"endswith", "suffix", has_affix<false>},
      {"format", "...", format_text},
  };
  return kMethods;
}

}  // namespace tessera::internal::jinja
