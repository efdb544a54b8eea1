// Values as Python prints them.
#pragma once

#include <string>
#include <string_view>

#include "data/templates/rendering.h"
#include "data/templates/value.h"

namespace tessera::internal::jinja {

// str(value): what {{ value }} writes. Nothing for what is undefined.
void append_str(Rendering& rendering, std::string& text, const Value& value);
std::string str_of(Rendering& rendering, const Value& value);

// repr of a float: the shortest digits that read back the same, "1.0", "1e+16", "nan".
std::string real_text(double value);

}  // namespace tessera::internal::jinja
