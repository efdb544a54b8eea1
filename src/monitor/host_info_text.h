// Pure functions that parse the kernel's text files: /proc, /sys and the cgroups. Unexpected text gives none, never an
// exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// /etc/os-release: "Debian GNU/Linux 12 (bookworm)".
std::optional<std::string> parse_os_name(std::string_view os_release);

// /proc/cpuinfo. ARM kernels name no model: the name then comes from implementer and part.
struct CpuModel {
  std::optional<std::string> name;
  int num_processors = 0;
};
CpuModel parse_cpuinfo(std::string_view cpuinfo);

// A line "MemAvailable:   22016520 kB" of /proc/meminfo, in bytes.
std::optional<std::int64_t> parse_meminfo(std::string_view meminfo, std::string_view name);

// A line "inactive_file 4096" of memory.stat.
std::optional<std::int64_t> parse_stat(std::string_view text, std::string_view name);

// The content of memory.max or memory.limit_in_bytes. None: no limit ("max", or version 1's huge number).
std::optional<std::int64_t> parse_cgroup_limit(std::string_view text);

// cpu.max of version 2, "150000 100000" -> 1.5 cores; version 1 has quota and period in two files.
std::optional<double> parse_cpu_max(std::string_view text);
std::optional<double> parse_cpu_quota(std::string_view quota_us, std::string_view period_us);

// /proc/self/cgroup: the folder of this process below the cgroup file system's root, for version 2 ("") or for a
// controller of version 1 ("memory").
std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller);

// The folder and its parents, itself first: "/a/b" -> "/a/b", "/a", "/". The limits of all of them apply.
std::vector<std::string> folder_and_parents(const std::string& folder);

// Which of `names` a variable such as NCCL_SOCKET_IFNAME selects: a comma-separated list of prefixes. A leading '='
// means whole names; a '^' before that means all except those. Ports ("mlx5_0:1") are ignored.
std::vector<std::string> select_names(std::string_view pattern, const std::vector<std::string>& names);

}  // namespace tessera
