#include "core/host.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <system_error>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "core/file.h"
#include "core/text.h"

namespace tessera {

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

bool sleep_until(const std::stop_token& stop, std::chrono::steady_clock::time_point time) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_until(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

char process_state(pid_t pid) {
  const std::string text = read_if_possible(fmt::format("/proc/{}/stat", pid));
  const auto after_name = text.rfind(')');  // the name may hold anything
  return after_name == std::string::npos || text.size() < after_name + 3 ? '\0' : text[after_name + 2];
}

bool has_ended(pid_t pid) {
  const char state = process_state(pid);
  // Where the file cannot be read, that need not be because there is no such process.
  return state == 'Z' || state == 'X' || (state == '\0' && kill(pid, 0) != 0 && errno == ESRCH);
}

std::string process_name(pid_t pid) {
  return std::string(trim(read_if_possible(fmt::format("/proc/{}/comm", pid))));
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

std::optional<std::int64_t> named_number(std::string_view text, std::string_view name) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    std::int64_t number = 0;
    if (word == name) return words >> number ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

// In a container the path of /proc/self/cgroup is the host's and the root of the file system is ours: all but the last
// folder, the root, may be missing.
std::vector<std::filesystem::path> cgroup_folders(const std::filesystem::path& root, std::string_view controller) {
  const auto path = parse_cgroup_path(read_if_possible(root / "proc/self/cgroup"), controller);
  if (!path) return {};
  const auto mount = controller.empty() ? root / "sys/fs/cgroup" : root / "sys/fs/cgroup" / controller;
  std::vector<std::filesystem::path> folders;
  for (auto folder = std::filesystem::path(*path).relative_path();; folder = folder.parent_path()) {
    folders.push_back(folder.empty() ? mount : mount / folder);
    if (folder.empty()) return folders;
  }
}

std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller) {
  for (const std::string& line : split(text, '\n')) {
    // "4:memory,hugetlb:/folder"; version 2: "0::/folder". The folder itself may hold colons.
    const auto first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string folder = line.substr(second + 1);
    const bool is_version_2 = line.starts_with("0::");
    if (controller.empty() ? is_version_2 : std::ranges::find(controllers, controller) != controllers.end()) {
      return folder.empty() ? "/" : folder;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_cgroup_limit(std::string_view text) {
  // Version 1 has no word for 'none': it gives 2^63 - 1, rounded down to pages.
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;
  const auto limit = parse_integer(trim(text));
  return limit && *limit > 0 && *limit < kNoLimit ? std::optional<std::int64_t>(*limit) : std::nullopt;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargestAllowed = 32 << 20;  // glibc's largest; a bigger block is still mapped and unmapped by itself
  mallopt(M_MMAP_THRESHOLD, kLargestAllowed);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

}  // namespace tessera
