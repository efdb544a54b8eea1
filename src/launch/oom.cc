#include "launch/oom.h"

#include <fmt/format.h>

#include <vector>

#include "core/file.h"
#include "core/host.h"
#include "core/quantity.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// The tightest limit of the folders from `first` on, the mount last.
std::string limit_text(const std::vector<fs::path>& folders, std::size_t first, const char* file) {
  std::optional<std::int64_t> limit;
  fs::path where;
  for (std::size_t i = first; i < folders.size(); ++i) {
    const auto found = parse_cgroup_limit(read_if_possible(folders[i] / file));
    if (!found || (limit && *found >= *limit)) continue;
    limit = found;
    where = folders[i];
  }
  if (!limit) return "";
  return fmt::format(" (memory limit {} of cgroup /{})", human_bytes(*limit),
                     where.lexically_relative(folders.back()).string());
}

}  // namespace

OomWatch::OomWatch(const fs::path& root) {
  struct Layout {
    const char *controller, *counter, *limit;
  };
  for (const Layout& layout :
       {Layout{"", "memory.events", "memory.max"}, Layout{"memory", "memory.oom_control", "memory.limit_in_bytes"}}) {
    const std::vector<fs::path> folders = cgroup_folders(root, layout.controller);
    if (folders.empty()) continue;
    // Inside a container the group's path may be the host's, not visible here: then the mounted root is this process's
    // group.
    const std::size_t own = is_there(folders.front() / layout.counter) ? 0 : folders.size() - 1;
    counter_file_ = folders[own] / layout.counter;
    kills_before_ = count_kills();
    if (!kills_before_) continue;
    place_ = limit_text(folders, own, layout.limit);
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
  return named_number(read_if_possible(counter_file_), "oom_kill");
}

}  // namespace tessera
