// What the readers of memory logs share: a file as lines, of which the last may be cut off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Without line ends (\n or \r\n) and empty lines. A last line without its end is left out: its writer was killed while
// it wrote, or still writes, and a number may be cut.
std::vector<std::string> whole_lines(std::string_view text);

}  // namespace tessera
