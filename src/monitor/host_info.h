// This host, as `tessera env` shows it and as comm-test checks its memory: read from /proc, /sys and the cgroups.
//
// Nothing here throws: what cannot be read is empty, which is shown as 'unknown'. No process is started.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
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

}  // namespace tessera
