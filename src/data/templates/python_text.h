// Values as Python prints them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// str(value): what {{ value }} writes. Nothing for what is undefined.
void append_str(Rendering& rendering, std::string& text, const Value& value);
std::string str_of(Rendering& rendering, const Value& value);
// repr(value): as within a list, texts in quotes.
void append_repr(Rendering& rendering, std::string& text, const Value& value);
void append_list_repr(Rendering& rendering, std::string& text, const Values& items);
void append_dict_repr(Rendering& rendering, std::string& text, const std::vector<std::pair<Value, Value>>& entries);

// repr of a float: the shortest digits that read back the same, "1.0", "1e+16", "nan".
std::string real_text(double value);
// The digits of a number as Python's %e, %f and %g write them; `style` is one of those letters.
std::string fixed_text(double value, char style, int precision);

}  // namespace tessera::internal::jinja
