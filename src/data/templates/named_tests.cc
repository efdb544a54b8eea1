// Tests: value is defined, value is divisibleby 3.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "data/templates/arguments.h"
#include "data/templates/arithmetic.h"
#include "data/templates/compare.h"
#include "data/templates/filters.h"
#include "data/templates/python_text.h"
#include "data/templates/sequence.h"
#include "data/templates/unicode_text.h"

namespace tessera::internal::jinja {
namespace {

template <auto condition>
bool holds(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters none(rendering, "this test", arguments, {});
  return condition(rendering, value);
}

bool has_remainder(Rendering& rendering, const Value& value, std::int64_t by, std::int64_t rest) {
  const Value remainder = calculate(rendering, Operation::kRemainder, value, Value(by));
  return are_equal(rendering, remainder, Value(rest));
}
bool is_odd(Rendering& rendering, const Value& value) {
  return has_remainder(rendering, value, 2, 1);
}
bool is_even(Rendering& rendering, const Value& value) {
  return has_remainder(rendering, value, 2, 0);
}
bool is_divisible(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "divisibleby", arguments, {"num"}, 1);
  return are_equal(rendering, calculate(rendering, Operation::kRemainder, value, given.at(0)), Value(std::int64_t{0}));
}

bool is_defined(Rendering&, const Value& value) {
  return !value.is_undefined();
}
bool is_undefined(Rendering&, const Value& value) {
  return value.is_undefined();
}
bool is_none(Rendering&, const Value& value) {
  return value.is_none();
}
bool is_boolean(Rendering&, const Value& value) {
  return value.is_bool();
}
bool is_true(Rendering&, const Value& value) {
  return value.is_true();
}
bool is_false(Rendering&, const Value& value) {
  return value.is_bool() && !value.is_true();
}
bool is_whole(Rendering&, const Value& value) {
  return value.is_integer();
}
bool is_float(Rendering&, const Value& value) {
  return value.is_real();
}
bool is_any_number(Rendering&, const Value& value) {
  return value.is_number();
}
bool is_string(Rendering&, const Value& value) {
  return value.text() != nullptr;
}
bool is_mapping(Rendering&, const Value& value) {
  return value.dict() != nullptr;
}
bool is_escaped(Rendering&, const Value& value) {
  return value.is_markup();
}
bool is_callable_value(Rendering&, const Value& value) {
  // What is undefined has Python's __call__, too, which refuses.
  return value.is_undefined() || (value.object() != nullptr && value.object()->is_callable());
}
bool is_sequence(Rendering&, const Value& value) {
  return value.items() != nullptr || value.text() != nullptr || value.dict() != nullptr || value.is_undefined() ||
         (value.object() != nullptr && value.object()->type_name() == "range");
}
bool is_iterable(Rendering& rendering, const Value& value) {
  if (value.object() == nullptr) return is_sequence(rendering, value);
  return dynamic_cast<const Iterator*>(value.object()) != nullptr || value.object()->length(rendering).has_value();
}
template <bool wants_upper>
bool has_letter_case(Rendering& rendering, const Value& value) {
  bool has_one = false, has_other = false;
  const std::string text = str_of(rendering, value);
  rendering.spend(text.size() / 4);
  for_each_character(text, [&](char32_t c, std::size_t, std::size_t) {
    (wants_upper == is_upper(c) && (is_upper(c) || is_lower(c)) ? has_one : has_other) |= is_upper(c) || is_lower(c);
    has_other = has_other || is_title(c);
  });
  return has_one && !has_other;
}
bool is_filter_name(Rendering&, const Value& value) {
  return value.text() != nullptr && find_filter(*value.text()) != nullptr;
}
bool is_test_name(Rendering&, const Value& value) {
  return value.text() != nullptr && find_test(*value.text()) != nullptr;
}

template <int symbol>
bool compares(Rendering& rendering, const Value& value, const Arguments& arguments) {
  static constexpr std::string_view kSymbols[] = {"==", "!=", "<", "<=", ">", ">="};
  const Parameters given(rendering, "this test", arguments, {"other"}, 1);
  return compare(rendering, value, kSymbols[symbol], given.at(0));
}
bool is_in(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "in", arguments, {"seq"}, 1);
  return contains_item(rendering, given.at(0), value);
}
bool is_same_as(Rendering& rendering, const Value& value, const Arguments& arguments) {
  const Parameters given(rendering, "sameas", arguments, {"other"}, 1);
  return value.is_same(given.at(0));
}

struct NamedTest {
  std::string_view name;
  Test test;
};

constexpr NamedTest kTests[] = {
    {"odd", holds<is_odd>},
    {"even", holds<is_even>},
    {"divisibleby", is_divisible},
    {"defined", holds<is_defined>},
    {"undefined", holds<is_undefined>},
    {"none", holds<is_none>},
    {"boolean", holds<is_boolean>},
    {"true", holds<is_true>},
    {"false", holds<is_false>},
    {"integer", holds<is_whole>},
    {"float", holds<is_float>},
    {"number", holds<is_any_number>},
    {"string", holds<is_string>},
    {"mapping", holds<is_mapping>},
    {"sequence", holds<is_sequence>},
    {"iterable", holds<is_iterable>},
    {"callable", holds<is_callable_value>},
    {"escaped", holds<is_escaped>},
    {"lower", holds<has_letter_case<false>>},
    {"upper", holds<has_letter_case<true>>},
    {"filter", holds<is_filter_name>},
    {"test", holds<is_test_name>},
    {"sameas", is_same_as},
    {"in", is_in},
    {"==", compares<0>},
    {"eq", compares<0>},
    {"equalto", compares<0>},
    {"!=", compares<1>},
    {"ne", compares<1>},
    {"<", compares<2>},
    {"lt", compares<2>},
    {"lessthan", compares<2>},
    {"<=", compares<3>},
    {"le", compares<3>},
    {">", compares<4>},
    {"gt", compares<4>},
    {"greaterthan", compares<4>},
    {">=", compares<5>},
    {"ge", compares<5>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const NamedTest& each : kTests) {
    if (each.name == name) return each.test;
  }
  return nullptr;
}

std::string unknown_test(std::string_view name) {
  std::vector<std::string> names;
  for (const NamedTest& each : kTests) names.emplace_back(each.name);
  return fmt::format("no test is named '{}'{}", printable(name, 60), did_you_mean(name, names));
}

}  // namespace tessera::internal::jinja
