#include "monitor/host_info.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>

#include "core/file.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

template <typename Number>
void lower(std::optional<Number>& least, const std::optional<Number>& value) {
  if (value && (!least || *value < *least)) least = value;
}

std::optional<std::int64_t> read_number(const fs::path& path) {
  return parse_integer(trim(read_if_possible(path)));
}

struct CgroupVersion {
  const char *controller, *limit, *usage, *prefix;  // of the names in memory.stat
};
constexpr CgroupVersion kCgroupVersions[] = {
    {"", "memory.max", "memory.current", ""},
    {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
};

// What a cgroup's files say of its use, less what its memory.stat says under those names.
std::optional<std::int64_t> used_without(const fs::path& folder, const CgroupVersion& version,
                                         std::initializer_list<const char*> names) {
  const auto usage = read_number(folder / version.usage);
  if (!usage) return std::nullopt;
  const std::string stat = read_if_possible(folder / "memory.stat");
  std::int64_t used = *usage;
  for (const char* name : names) used -= named_number(stat, std::string(version.prefix) + name).value_or(0);
  return std::max<std::int64_t>(0, used);
}

void apply_memory_limits(const fs::path& root, const CgroupVersion& version, MemoryInfo& memory) {
  for (const fs::path& folder : cgroup_folders(root, version.controller)) {
    const auto limit = parse_cgroup_limit(read_if_possible(folder / version.limit));
    if (!limit) continue;
    lower(memory.cgroup_limit_bytes, limit);
    // The kernel reclaims inactive file pages before it kills a process.
    const auto used = used_without(folder, version, {"inactive_file"});
    if (used) lower(memory.cgroup_available_bytes, std::optional(std::max<std::int64_t>(0, *limit - *used)));
  }
}

// The job's folder, else the first: this process's own.
std::vector<fs::path> folders_of_job(std::vector<fs::path> folders, const std::string& slurm_job) {
  const auto is_job = [&](const fs::path& folder) { return folder.filename() == "job_" + slurm_job; };
  const auto found = std::ranges::find_if(folders, is_job);
  if (found != folders.end()) folders.erase(folders.begin(), found);
  return folders;
}

std::optional<double> read_quota(const fs::path& root) {
  std::optional<double> least;
  for (const fs::path& folder : cgroup_folders(root, "")) {
    lower(least, parse_cpu_max(read_if_possible(folder / "cpu.max")));
  }
  for (const fs::path& folder : cgroup_folders(root, "cpu")) {
    lower(least, parse_cpu_quota(read_if_possible(folder / "cpu.cfs_quota_us"),
                                 read_if_possible(folder / "cpu.cfs_period_us")));
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
    auto known = std::ranges::find_if(interfaces, [&](const NetworkInterface& i) { return i.name == each->ifa_name; });
    if (known == interfaces.end()) {
      NetworkInterface fresh;
      fresh.name = each->ifa_name;
      fresh.is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_RUNNING) != 0;
      fresh.is_loopback = (each->ifa_flags & IFF_LOOPBACK) != 0;
      const auto speed = parse_integer(trim(read_if_possible(root / "sys/class/net" / fresh.name / "speed")));
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
    const bool is_nvidia = trim(read_if_possible(bus / device / "vendor")) == "0x10de";
    count +=
        is_nvidia && read_if_possible(bus / device / "class").starts_with("0x03");  // display controllers, 3D ones too
  }
  return count;
}

void read_shm(const fs::path& root, MemoryInfo& memory) {
  struct statvfs facts {};
  if (statvfs((root / "dev/shm").c_str(), &facts) != 0) return;
  memory.shm_total_bytes = static_cast<std::int64_t>(facts.f_blocks) * static_cast<std::int64_t>(facts.f_frsize);
  memory.shm_available_bytes = static_cast<std::int64_t>(facts.f_bavail) * static_cast<std::int64_t>(facts.f_frsize);
}

struct KeyValue {
  std::string_view key, value;
};

// "key<separator>value", both trimmed; a line without the separator is all key.
KeyValue cut(std::string_view line, std::string_view separators) {
  const auto at = line.find_first_of(separators);
  if (at == std::string_view::npos) return {trim(line), {}};
  return {trim(line.substr(0, at)), trim(line.substr(at + 1))};
}

// The parts found in servers; an unlisted number is shown as it is.
std::string arm_name(const std::string& implementer, const std::string& part) {
  static const std::map<std::string, std::string> kParts = {
      {"0x41 0xd07", "Cortex-A57"},  {"0x41 0xd08", "Cortex-A72"},  {"0x41 0xd0c", "Neoverse-N1"},
      {"0x41 0xd40", "Neoverse-V1"}, {"0x41 0xd49", "Neoverse-N2"}, {"0x41 0xd4f", "Neoverse-V2"},
      {"0xc0 0xac3", "Ampere-1"},    {"0xc0 0xac4", "Ampere-1a"}};
  const auto known = kParts.find(implementer + " " + part);
  if (known != kParts.end()) return "ARM " + known->second;
  return fmt::format("ARM, implementer {}, part {}", implementer, part);
}

}  // namespace

std::optional<std::int64_t> MemoryInfo::usable_bytes() const {
  std::optional<std::int64_t> least;
  for (const auto& each : {available_bytes, cgroup_limit_bytes, cgroup_available_bytes}) lower(least, each);
  return least;
}

std::optional<std::int64_t> MemoryInfo::most_bytes() const {
  std::optional<std::int64_t> least = total_bytes;
  lower(least, cgroup_limit_bytes);
  return least ? std::optional(*least + swap_bytes.value_or(0)) : std::nullopt;
}

CpuInfo read_cpu_info(const fs::path& root) {
  CpuInfo cpu = parse_cpuinfo(read_if_possible(root / "proc/cpuinfo"));
  cpu.quota = read_quota(root);
  return cpu;
}

MemoryInfo read_memory_info(const fs::path& root) {
  MemoryInfo memory;
  const std::string meminfo = read_if_possible(root / "proc/meminfo");
  memory.total_bytes = parse_meminfo(meminfo, "MemTotal");
  memory.available_bytes = parse_meminfo(meminfo, "MemAvailable");
  memory.swap_bytes = parse_meminfo(meminfo, "SwapTotal");
  for (const CgroupVersion& version : kCgroupVersions) apply_memory_limits(root, version, memory);
  read_shm(root, memory);
  return memory;
}

std::optional<std::int64_t> read_cgroup_used_bytes(const std::string& slurm_job, const fs::path& root) {
  for (const CgroupVersion& version : kCgroupVersions) {
    for (const fs::path& folder : folders_of_job(cgroup_folders(root, version.controller), slurm_job)) {
      if (const auto used = used_without(folder, version, {"inactive_file", "active_file"})) return used;
    }
  }
  return std::nullopt;
}

HostInfo read_host_info(const fs::path& root) {
  HostInfo host;
  std::string os_release = read_if_possible(root / "etc/os-release");
  if (os_release.empty()) os_release = read_if_possible(root / "usr/lib/os-release");
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

std::optional<std::string> parse_os_name(std::string_view os_release) {
  std::optional<std::string> name;
  for (const std::string& line : split(os_release, '\n')) {
    const auto [key, value] = cut(line, "=");
    std::string_view bare = value;
    if (bare.size() >= 2 && (bare.front() == '"' || bare.front() == '\'') && bare.back() == bare.front()) {
      bare = bare.substr(1, bare.size() - 2);
    }
    if (bare.empty()) continue;
    if (key == "PRETTY_NAME") return std::string(bare);
    if (key == "NAME") name = std::string(bare);
  }
  return name;
}

CpuInfo parse_cpuinfo(std::string_view cpuinfo) {
  CpuInfo cpu;
  std::string implementer, part;
  for (const std::string& line : split(cpuinfo, '\n')) {
    const auto [key, value] = cut(line, ":");
    if (key == "processor") ++cpu.num_processors;
    if (!cpu.model && !value.empty() && (key == "model name" || key == "Model" || key == "cpu model")) {
      cpu.model = std::string(value);
    }
    if (key == "CPU implementer" && implementer.empty()) implementer = std::string(value);
    if (key == "CPU part" && part.empty()) part = std::string(value);
  }
  if (!cpu.model && !implementer.empty()) cpu.model = arm_name(implementer, part);
  return cpu;
}

std::optional<std::int64_t> parse_meminfo(std::string_view meminfo, const std::string& name) {
  const auto kib = named_number(meminfo, name + ":");
  std::int64_t bytes = 0;
  if (!kib || *kib < 0 || __builtin_mul_overflow(*kib, std::int64_t{1024}, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto [quota, period] = cut(trim(text), " \t");
  return parse_cpu_quota(quota, period);
}

std::optional<double> parse_cpu_quota(std::string_view quota_us, std::string_view period_us) {
  const auto quota = parse_integer(trim(quota_us)), period = parse_integer(trim(period_us));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::vector<std::string> select_names(std::string_view pattern, const std::vector<std::string>& names) {
  pattern = trim(pattern);
  const bool excludes = pattern.starts_with('^');
  if (excludes) pattern.remove_prefix(1);
  const bool is_exact = pattern.starts_with('=');
  if (is_exact) pattern.remove_prefix(1);
  const auto matches = [&](const std::string& name) {
    for (const std::string& entry : split(pattern, ',')) {
      const std::string_view word = trim(std::string_view(entry).substr(0, entry.find(':')));
      if (!word.empty() && (is_exact ? name == word : name.starts_with(word))) return true;
    }
    return false;
  };
  std::vector<std::string> selected;
  for (const std::string& name : names) {
    if (matches(name) != excludes) selected.push_back(name);
  }
  return selected;
}

}  // namespace tessera
