// Did the kernel end a process because memory ran out? Asked of the cgroup's counters, before and after.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

// Construct before the process starts, in the cgroup it will run in; ask when it has died by SIGKILL.
//
// Reads cgroup v2 (memory.events), else v1 (memory.oom_control), else the whole host's counter in /proc/vmstat, whose
// word is weaker: it counts kills of any process of the host. `root` stands for / in tests.
class OomWatch {
 public:
  explicit OomWatch(std::filesystem::path root = "/");

  // "the kernel's out-of-memory killer ended it (memory limit 2.0 GiB of cgroup /job)", or empty.
  std::string verdict() const;

 private:
  std::optional<std::int64_t> count_kills() const;

  std::filesystem::path counter_file_;
  std::string counter_name_ = "oom_kill";
  std::string place_;  // what the verdict says of the limit, or of the host
  std::optional<std::int64_t> kills_before_;
};

}  // namespace tessera
