// This host, as `tessera env` shows it and as comm-test checks its memory: read from /proc, /sys and the cgroups.
//
// Nothing here throws: what cannot be read is empty, which is shown as 'unknown'. No process is started.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct CpuInfo {
  std::optional<std::string> model;
  int num_processors = 0;       // of the host, hyperthreads counted; 0: unknown
  std::optional<double> quota;  // CPU time that the cgroup allows, in cores
};

struct MemoryInfo {
  std::optional<std::int64_t> total_bytes, available_bytes;          // of the host
  std::optional<std::int64_t> swap_bytes;                            // of the host, used or not
  std::optional<std::int64_t> cgroup_limit_bytes;                    // the lowest of the cgroup and its parents
  std::optional<std::int64_t> cgroup_available_bytes;                // what is left of it; file cache counts as free
  std::optional<std::int64_t> shm_total_bytes, shm_available_bytes;  // /dev/shm

  // What this process could allocate now within both limits; none: unknown.
  std::optional<std::int64_t> usable_bytes() const;
  // What all processes within both limits could ever hold, swap included; none: unknown.
  std::optional<std::int64_t> most_bytes() const;
};

struct NetworkInterface {
  std::string name;
  bool is_up = false, is_loopback = false;
  std::vector<std::string> addresses;
  std::optional<int> speed_mbit;
};

struct HostInfo {
  std::optional<std::string> os_name, kernel, architecture, host_name;
  CpuInfo cpu;
  MemoryInfo memory;
  std::vector<NetworkInterface> interfaces;
  std::vector<std::string> infiniband_devices;
  int num_nvidia_devices = 0;  // on the PCI bus, whether or not a driver serves them
};

// `root` replaces / in tests.
HostInfo read_host_info(const std::filesystem::path& root = "/");
CpuInfo read_cpu_info(const std::filesystem::path& root = "/");
MemoryInfo read_memory_info(const std::filesystem::path& root = "/");

// What the cgroup of this process holds without page cache, which the kernel drops when memory is short; pages that
// processes share count once. In a Slurm job it is that of the whole job on this host (its folder is job_<id>). None:
// there is no cgroup, or it does not count memory.
std::optional<std::int64_t> read_cgroup_used_bytes(const std::string& slurm_job = "",
                                                   const std::filesystem::path& root = "/");

// Pure functions that parse the kernel's text files. Unexpected text gives none, never an
// exception.

// /etc/os-release: "Debian GNU/Linux 12 (bookworm)".
std::optional<std::string> parse_os_name(std::string_view os_release);

// /proc/cpuinfo. ARM kernels name no model: the name then comes from implementer and part.
CpuInfo parse_cpuinfo(std::string_view cpuinfo);

// A line "MemAvailable:   22016520 kB" of /proc/meminfo, in bytes.
std::optional<std::int64_t> parse_meminfo(std::string_view meminfo, const std::string& name);

// cpu.max of version 2, "150000 100000" -> 1.5 cores; version 1 has quota and period in two files.
std::optional<double> parse_cpu_max(std::string_view text);
std::optional<double> parse_cpu_quota(std::string_view quota_us, std::string_view period_us);

// Which of `names` a variable such as NCCL_SOCKET_IFNAME selects: a comma-separated list of prefixes. A leading '='
// means whole names; a '^' before that means all except those. Ports ("mlx5_0:1") are ignored.
std::vector<std::string> select_names(std::string_view pattern, const std::vector<std::string>& names);

}  // namespace tessera
