#include "monitor/log_lines.h"

#include "core/text.h"

namespace tessera {

std::vector<std::string> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  const std::size_t end = text.rfind('\n');
  if (end == std::string_view::npos) return lines;
  for (std::string& line : split(text.substr(0, end), '\n')) {
    if (line.ends_with('\r')) line.pop_back();
    if (!trim(line).empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace tessera
