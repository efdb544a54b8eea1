// What $((...)) computes in job scripts: whole numbers, names, + - * / % and brackets. (no torch)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// Nothing for a text that is not understood, a name without a number, or a division by zero.
std::optional<long long> shell_arithmetic(std::string_view text,
                                          const std::function<std::optional<long long>(const std::string&)>& value_of);

}  // namespace tessera
