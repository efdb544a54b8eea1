#include "core/process_state.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

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

bool has_ended(pid_t pid) {
  const char state = process_state(pid);
  // Where the file cannot be read, that need not be because there is no such process.
  return state == 'Z' || state == 'X' || (state == '\0' && kill(pid, 0) != 0 && errno == ESRCH);
}

std::string process_name(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  std::getline(file, name);
  return name;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code gone;
  // The kernel lists them by the thread that made them.
  std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", pid), gone);
  for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone)) {
    std::ifstream file(thread->path() / "children");
    children.insert(children.end(), std::istream_iterator<pid_t>(file), {});
  }
  return children;
}

}  // namespace tessera
