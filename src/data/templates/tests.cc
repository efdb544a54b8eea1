// Tests: value is defined, value is eq 3.
#include "data/templates/functions.h"
#include "data/templates/python.h"

namespace tessera::internal::jinja {
namespace {

// What has items by index or by key; what is undefined has none, but would not refuse.
bool is_sequence(const Value& value) {
  return value.list() != nullptr || value.text() != nullptr || value.dict() != nullptr || value.is_undefined();
}

Value is_known_sequence(const Call& call) {
  const auto* sequence = dynamic_cast<const Sequence*>(call.self.object());
  if (sequence != nullptr && !sequence->is_generator()) call.refuse("of a range or a view is not supported");
  return Value(is_sequence(call.self));
}

bool is_iterable(const Value& value) {
  return is_sequence(value) || dynamic_cast<const Sequence*>(value.object()) != nullptr;
}

template <std::int64_t rest>
Value has_rest(const Call& call) {
  const Value remainder = calculate(call.rendering, "%", call.self, Value(std::int64_t{2}));
  return Value(remainder.integer() == rest);
}

template <auto& symbol>
Value compares_to(const Call& call) {
  return calculate(call.rendering, symbol, call.self, call.at(0));
}
constexpr char kEqual[] = "==", kNotEqual[] = "!=", kLess[] = "<", kLessEqual[] = "<=", kGreater[] = ">",
               kGreaterEqual[] = ">=", kIn[] = "in";

}  // namespace

Functions tests() {
  static constexpr Function kTests[] = {
      {"defined", "", [](const Call& call) { return Value(!call.self.is_undefined()); }},
      {"undefined", "", [](const Call& call) { return Value(call.self.is_undefined()); }},
      {"none", "", [](const Call& call) { return Value(call.self.is_none()); }},
      {"boolean", "", [](const Call& call) { return Value(call.self.is_bool()); }},
      {"true", "", [](const Call& call) { return Value(call.self.is_true()); }},
      {"false", "", [](const Call& call) { return Value(call.self.is_bool() && !call.self.is_true()); }},
      {"integer", "", [](const Call& call) { return Value(call.self.is_integer()); }},
      {"float", "", [](const Call& call) { return Value(call.self.is_real()); }},
      {"number", "", [](const Call& call) { return Value(call.self.is_number()); }},
      {"string", "", [](const Call& call) { return Value(call.self.text() != nullptr); }},
      {"mapping", "", [](const Call& call) { return Value(call.self.dict() != nullptr); }},
      {"sequence", "", is_known_sequence},
      {"iterable", "", [](const Call& call) { return Value(is_iterable(call.self)); }},
      {"odd", "", has_rest<1>},
      {"even", "", has_rest<0>},
      {"in", "seq", compares_to<kIn>},
      {"==", "other", compares_to<kEqual>},
      {"eq", "other", compares_to<kEqual>},
      {"equalto", "other", compares_to<kEqual>},
      {"!=", "other", compares_to<kNotEqual>},
      {"ne", "other", compares_to<kNotEqual>},
      {"lt", "other", compares_to<kLess>},
      {"le", "other", compares_to<kLessEqual>},
      {"gt", "other", compares_to<kGreater>},
      {"ge", "other", compares_to<kGreaterEqual>},
  };
  return kTests;
}

}  // namespace tessera::internal::jinja
