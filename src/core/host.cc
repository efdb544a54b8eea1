#include "core/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <fstream>
#include <iterator>
#include <system_error>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace tessera {

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

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

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestAllowed = 32 << 20;  // glibc's largest; a bigger block is still mapped and unmapped by itself
  mallopt(M_MMAP_THRESHOLD, kLargestAllowed);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace tessera
