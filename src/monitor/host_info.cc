#include "monitor/host_info.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Empty if it cannot be read. core/file.h's function throws, and so does a stream's buffer if the kernel answers a read
// with an error (the speed of an interface that is down, a folder).
std::string read_text(const fs::path& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
  std::string text;
  char block[4096];
  while (file) {
    const std::size_t size = std::fread(block, 1, sizeof block, file.get());
    if (size == 0) break;
    text.append(block, size);
  }
  return text;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The folders whose limits apply to this process, its own first. In a container the path of /proc/self/cgroup is the
// host's and the root of the file system is ours: missing folders are skipped, and the root is always last.
std::vector<fs::path> cgroup_folders(const fs::path& root, std::string_view controller) {
  const auto path = parse_cgroup_path(read_text(root / "proc/self/cgroup"), controller);
  if (!path) return {};
  const fs::path mount = controller.empty() ? root / "sys/fs/cgroup" : root / "sys/fs/cgroup" / controller;
  std::vector<fs::path> folders;
  for (const std::string& folder : folder_and_parents(*path)) {
    const fs::path candidate = mount / folder.substr(1);
    std::error_code ignored;
    if (fs::is_directory(candidate, ignored)) folders.push_back(candidate);
  }
  return folders;
}

void lower(std::optional<std::int64_t>& least, std::int64_t value) {
  least = least ? std::min(*least, value) : value;
}

struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive_file;  // the name in memory.stat
};

void apply_memory_limits(const std::vector<fs::path>& folders, const CgroupFiles& files, MemoryInfo& memory) {
  for (const fs::path& folder : folders) {
    const auto limit = parse_cgroup_limit(read_text(folder / files.limit));
    if (!limit) continue;
    lower(memory.cgroup_limit_bytes, *limit);
    const std::string usage_text = read_text(folder / files.usage);
    const auto usage = parse_integer(trim(usage_text));
    // The kernel reclaims inactive file pages before it kills a process.
    const auto reclaimable = parse_stat(read_text(folder / "memory.stat"), files.inactive_file);
    if (usage) {
      const std::int64_t used = std::max<std::int64_t>(0, *usage - reclaimable.value_or(0));
      lower(memory.cgroup_available_bytes, std::max<std::int64_t>(0, *limit - used));
    }
  }
}

std::optional<std::int64_t> used_without_cache(const fs::path& folder, const char* usage_file,
                                               const std::string& prefix) {
  const std::string usage_text = read_text(folder / usage_file);
  const auto usage = parse_integer(trim(usage_text));
  if (!usage) return std::nullopt;
  const std::string stat = read_text(folder / "memory.stat");
  const std::int64_t cache =
      parse_stat(stat, prefix + "inactive_file").value_or(0) + parse_stat(stat, prefix + "active_file").value_or(0);
  return std::max<std::int64_t>(0, *usage - cache);
}

// The job's folder, else the first: this process's own.
std::vector<fs::path> folders_of_job(std::vector<fs::path> folders, const std::string& slurm_job) {
  const auto is_job = [&](const fs::path& folder) { return folder.filename() == "job_" + slurm_job; };
  const auto found = std::find_if(folders.begin(), folders.end(), is_job);
  if (found != folders.end()) folders.erase(folders.begin(), found);
  return folders;
}

std::optional<double> read_quota(const fs::path& root) {
  std::optional<double> least;
  const auto apply = [&](std::optional<double> quota) {
    if (quota) least = least ? std::min(*least, *quota) : *quota;
  };
  for (const fs::path& folder : cgroup_folders(root, "")) apply(parse_cpu_max(read_text(folder / "cpu.max")));
  for (const fs::path& folder : cgroup_folders(root, "cpu")) {
    apply(parse_cpu_quota(read_text(folder / "cpu.cfs_quota_us"), read_text(folder / "cpu.cfs_period_us")));
  }
  return least;
}

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  }
  return text;
}

std::vector<NetworkInterface> read_interfaces(const fs::path& root) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<NetworkInterface> interfaces;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    auto known = std::find_if(interfaces.begin(), interfaces.end(),
                              [&](const NetworkInterface& i) { return i.name == each->ifa_name; });
    if (known == interfaces.end()) {
      NetworkInterface fresh;
      fresh.name = each->ifa_name;
      fresh.is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_RUNNING) != 0;
      fresh.is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0;
      const auto speed = parse_integer(trim(read_text(root / "sys/class/net" / fresh.name / "speed")));
      if (speed && *speed > 0) fresh.speed_mbit = static_cast<int>(*speed);
      known = interfaces.insert(interfaces.end(), std::move(fresh));
    }
    if (each->ifa_addr == nullptr) continue;
    if (std::string text = address_text(each->ifa_addr); !text.empty()) known->addresses.push_back(std::move(text));
  }
  return interfaces;
}

int count_nvidia_devices(const fs::path& root) {
  const fs::path bus = root / "sys/bus/pci/devices";
  int count = 0;
  for (const std::string& device : names_in(bus)) {
    const bool is_nvidia = trim(read_text(bus / device / "vendor")) == "0x10de";
    count += is_nvidia && read_text(bus / device / "class").starts_with("0x03");  // display controllers, 3D ones too
  }
  return count;
}

void read_shm(const fs::path& root, MemoryInfo& memory) {
  struct statvfs facts {};
  if (statvfs((root / "dev/shm").c_str(), &facts) != 0) return;
  memory.shm_total_bytes = static_cast<std::int64_t>(facts.f_blocks) * static_cast<std::int64_t>(facts.f_frsize);
  memory.shm_available_bytes = static_cast<std::int64_t>(facts.f_bavail) * static_cast<std::int64_t>(facts.f_frsize);
}

}  // namespace

std::optional<std::int64_t> MemoryInfo::usable_bytes() const {
  std::optional<std::int64_t> least;
  for (const auto& each : {available_bytes, cgroup_limit_bytes, cgroup_available_bytes}) {
    if (each) lower(least, *each);
  }
  return least;
}

std::optional<std::int64_t> MemoryInfo::most_bytes() const {
  std::optional<std::int64_t> least = total_bytes;
  if (cgroup_limit_bytes) lower(least, *cgroup_limit_bytes);
  return least ? std::optional(*least + swap_bytes.value_or(0)) : std::nullopt;
}

CpuInfo read_cpu_info(const fs::path& root) {
  CpuInfo cpu = parse_cpuinfo(read_text(root / "proc/cpuinfo"));
  cpu.quota = read_quota(root);
  return cpu;
}

MemoryInfo read_memory_info(const fs::path& root) {
  MemoryInfo memory;
  const std::string meminfo = read_text(root / "proc/meminfo");
  memory.total_bytes = parse_meminfo(meminfo, "MemTotal");
  memory.available_bytes = parse_meminfo(meminfo, "MemAvailable");
  memory.swap_bytes = parse_meminfo(meminfo, "SwapTotal");
  apply_memory_limits(cgroup_folders(root, ""), {"memory.max", "memory.current", "inactive_file"}, memory);
  apply_memory_limits(cgroup_folders(root, "memory"),
                      {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}, memory);
  read_shm(root, memory);
  return memory;
}

std::optional<std::int64_t> read_cgroup_used_bytes(const std::string& slurm_job, const fs::path& root) {
  for (const fs::path& folder : folders_of_job(cgroup_folders(root, ""), slurm_job)) {
    if (const auto used = used_without_cache(folder, "memory.current", "")) return used;
  }
  for (const fs::path& folder : folders_of_job(cgroup_folders(root, "memory"), slurm_job)) {
    if (const auto used = used_without_cache(folder, "memory.usage_in_bytes", "total_")) return used;
  }
  return std::nullopt;
}

HostInfo read_host_info(const fs::path& root) {
  HostInfo host;
  std::string os_release = read_text(root / "etc/os-release");
  if (os_release.empty()) os_release = read_text(root / "usr/lib/os-release");
  host.os_name = parse_os_name(os_release);
  utsname names{};
  if (uname(&names) == 0) {
    host.kernel = names.release;
    host.architecture = names.machine;
    host.host_name = names.nodename;
  }
  host.cpu = read_cpu_info(root);
  host.memory = read_memory_info(root);
  host.interfaces = read_interfaces(root);
  host.infiniband_devices = names_in(root / "sys/class/infiniband");
  host.num_nvidia_devices = count_nvidia_devices(root);
  return host;
}

}  // namespace tessera
