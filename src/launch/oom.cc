#include "launch/oom.h"

#include <fstream>
#include <sstream>

#include "core/quantity.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// "0::/job" is v2's line, "4:memory:/job" v1's; empty if the process is in no such group.
std::string cgroup_path(const fs::path& cgroup_file, const std::string& controller) {
  std::ifstream file(cgroup_file);
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    for (const std::string& name : split(line.substr(first + 1, second - first - 1), ',')) {
      if (name == controller) return line.substr(second + 1);
    }
  }
  return "";
}

// Inside a container the group's path may be the host's, not visible here: then the mounted root is this process's
// group.
fs::path folder_of(const fs::path& mount, const std::string& group, const char* file) {
  const fs::path own = mount / fs::path(group).relative_path();
  std::error_code ignored;
  return fs::exists(own / file, ignored) ? own : mount;
}

std::optional<std::int64_t> read_number(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  if (!(file >> word)) return std::nullopt;
  return parse_integer(word);  // nothing for "max"
}

// The tightest limit of the group and those above it, up to the mount.
std::string limit_text(const fs::path& mount, fs::path group, const char* file) {
  // v1 writes "no limit" as the largest multiple of a page: anything near 2^63 is none.
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  std::int64_t limit = kNoLimit;
  fs::path where;
  for (;; group = group.parent_path()) {
    if (const auto found = read_number(group / file); found && *found < limit) {
      limit = *found;
      where = group;
    }
    if (group == mount || !group.has_relative_path() || group.native().size() <= mount.native().size()) break;
  }
  if (limit == kNoLimit) return "";
  return " (memory limit " + human_bytes(limit) + " of cgroup /" + where.lexically_relative(mount).string() + ")";
}

}  // namespace

OomWatch::OomWatch(fs::path root) {
  struct Layout {
    fs::path mount;
    const char *controller, *counter, *limit;
  };
  const fs::path groups = root / "proc/self/cgroup";
  for (const Layout& layout :
       {Layout{root / "sys/fs/cgroup", "", "memory.events", "memory.max"},
        Layout{root / "sys/fs/cgroup/memory", "memory", "memory.oom_control", "memory.limit_in_bytes"}}) {
    const std::string group = cgroup_path(groups, layout.controller);
    if (group.empty()) continue;
    const fs::path folder = folder_of(layout.mount, group, layout.counter);
    counter_file_ = folder / layout.counter;
    kills_before_ = count_kills();
    if (!kills_before_) continue;
    place_ = limit_text(layout.mount, folder, layout.limit);
    return;
  }
  counter_file_ = root / "proc/vmstat";
  place_ = " (judging by the whole host's count of such kills)";
  kills_before_ = count_kills();
}

std::string OomWatch::verdict() const {
  const auto kills_now = count_kills();
  if (!kills_before_ || !kills_now || *kills_now <= *kills_before_) return "";
  return "the kernel's out-of-memory killer killed it" + place_;
}

std::optional<std::int64_t> OomWatch::count_kills() const {
  std::ifstream file(counter_file_);
  std::string name;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::int64_t value = 0;
    if (words >> name >> value && name == counter_name_) return value;
  }
  return std::nullopt;
}

}  // namespace tessera
