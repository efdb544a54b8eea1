// Tests: value is defined, value is eq 3.
#include "data/templates/functions.h"
#include "data/templates/operators.h"

namespace tessera::internal::jinja {
namespace {

const Sequence* sequence_of(const Value& value) {
  return dynamic_cast<const Sequence*>(value.object());
}

// What has items by index or by key; what is undefined has none, but would not refuse.
bool is_sequence(const Value& value) {
  return value.list() != nullptr || value.text() != nullptr || value.dict() != nullptr || value.is_undefined() ||
         (sequence_of(value) != nullptr && sequence_of(value)->is_range());
}

template <std::int64_t rest>
Value has_rest(const Call& call) {
  const Value remainder = calculate(call.rendering, Operator::kRemainder, call.self, Value(std::int64_t{2}));
  return Value(remainder.integer() == rest);
}

template <Operator operation>
Value compares_to(const Call& call) {
  return calculate(call.rendering, operation, call.self, call.at(0));
}

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
      {"sequence", "", [](const Call& call) { return Value(is_sequence(call.self)); }},
      {"iterable", "",
       [](const Call& call) { return Value(is_sequence(call.self) || sequence_of(call.self) != nullptr); }},
      {"odd", "", has_rest<1>},
      {"even", "", has_rest<0>},
      {"in", "seq", compares_to<Operator::kIn>},
      {"==", "other", compares_to<Operator::kEqual>},
      {"eq", "other", compares_to<Operator::kEqual>},
      {"equalto", "other", compares_to<Operator::kEqual>},
      {"!=", "other", compares_to<Operator::kNotEqual>},
      {"ne", "other", compares_to<Operator::kNotEqual>},
      {"lt", "other", compares_to<Operator::kLess>},
      {"le", "other", compares_to<Operator::kLessEqual>},
      {"gt", "other", compares_to<Operator::kGreater>},
      {"ge", "other", compares_to<Operator::kGreaterEqual>},
  };
  return kTests;
}

}  // namespace tessera::internal::jinja
