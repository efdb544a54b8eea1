// Values as Python prints them, since scripts parse our lines as Python's.
#pragma once

#include <string>
#include <string_view>

#include "core/log_record.h"

namespace tessera {

// The shortest digits that give the same double back: 1e-05, 4.895, 1e+16, 100.0, nan, -inf.
std::string python_repr(double value);
std::string python_repr(std::string_view text);  // quoted as Python quotes it: 'text'
std::string python_repr(const LogValue& value);

// Python's round(value, places): of the exact binary value, ties to the even digit.
double python_round(double value, int places);

}  // namespace tessera
