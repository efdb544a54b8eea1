// Did the kernel kill a process because memory ran out? Compares the cgroup's counters before and after.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

// Construct it before the process starts, in the cgroup that the process will run in; call verdict() after a death by
// SIGKILL.
//
// Reads cgroup v2 (memory.events), else v1 (memory.oom_control), else the whole host's counter in /proc/vmstat, which
// is weaker evidence: it counts kills of any process on the host. `root` replaces / in tests.
class OomWatch {
 public:
  explicit OomWatch(const std::filesystem::path& root = "/");

  // "the kernel's out-of-memory killer killed it (memory limit 2.0 GiB of cgroup /job)", or empty.
  std::string verdict() const;

 private:
  std::optional<std::int64_t> count_kills() const;

  std::filesystem::path counter_file_;
  std::string place_;  // what the verdict says about the limit or the host
  std::optional<std::int64_t> kills_before_;
};

}  // namespace tessera
