#include "launch/mpirun_words.h"

#include "core/text.h"

namespace tessera {

std::string explanation_in(std::string_view words) {
  std::string kept;
  bool is_said = false;
  for (const std::string& line : split(words, '\n')) {
    const auto says = [&](const char* text) { return line.find(text) != std::string::npos; };
    if (says("Forwarding signal") || says("noticed that process rank")) continue;
    is_said = is_said || line.find_first_not_of("- ") != std::string::npos;
    kept.append(line).append("\n");
  }
  return is_said ? std::string(trim(kept)) : "";
}

}  // namespace tessera
