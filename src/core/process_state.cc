#include "core/process_state.h"

#include <fstream>
#include <string>

namespace tessera {

char process_state(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  const auto after_name = text.rfind(')');  // the name may hold anything
  return after_name == std::string::npos || text.size() < after_name + 3 ? '\0' : text[after_name + 2];
}

char process_state(pid_t pid) {
  return process_state(std::filesystem::path("/proc") / std::to_string(pid));
}

}  // namespace tessera
