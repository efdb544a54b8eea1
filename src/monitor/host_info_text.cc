#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text.h"
#include "monitor/host_info.h"

namespace tessera {
namespace {

struct KeyValue {
  std::string_view key, value;
};

// "key<separator>value", both trimmed; a line without the separator is all key.
KeyValue cut(std::string_view line, std::string_view separators) {
  const auto at = line.find_first_of(separators);
  if (at == std::string_view::npos) return {trim(line), {}};
  return {trim(line.substr(0, at)), trim(line.substr(at + 1))};
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const auto number = parse_integer(trim(text));
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
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

std::optional<std::int64_t> parse_meminfo(std::string_view meminfo, std::string_view name) {
  for (const std::string& line : split(meminfo, '\n')) {
    const auto [key, value] = cut(line, ":");
    if (key != name) continue;
    const auto kib = whole_number(value.substr(0, value.find(' ')));
    std::int64_t bytes = 0;
    if (!kib || *kib < 0 || __builtin_mul_overflow(*kib, std::int64_t{1024}, &bytes)) return std::nullopt;
    return bytes;
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_stat(std::string_view text, std::string_view name) {
  for (const std::string& line : split(text, '\n')) {
    const auto [key, value] = cut(line, " \t");
    if (key == name) return whole_number(value);
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_cgroup_limit(std::string_view text) {
  // Version 1 has no word for 'none': it gives 2^63 - 1, rounded down to pages.
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;
  const auto limit = whole_number(text);
  return limit && *limit > 0 && *limit < kNoLimit ? limit : std::nullopt;
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto [quota, period] = cut(trim(text), " \t");
  return parse_cpu_quota(quota, period);
}

std::optional<double> parse_cpu_quota(std::string_view quota_us, std::string_view period_us) {
  const auto quota = whole_number(quota_us), period = whole_number(period_us);
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller) {
  for (const std::string& line : split(text, '\n')) {
    // "4:memory,hugetlb:/folder"; version 2: "0::/folder". The folder itself may hold colons.
    const auto first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = split(line.substr(first + 1, second - first - 1), ',');
    const std::string folder = line.substr(second + 1);
    const bool is_version_2 = line.starts_with("0::");
    if (controller.empty() ? is_version_2
                           : std::find(controllers.begin(), controllers.end(), controller) != controllers.end()) {
      return folder.empty() ? "/" : folder;
    }
  }
  return std::nullopt;
}

std::vector<std::string> folder_and_parents(const std::string& folder) {
  std::vector<std::string> folders;
  std::string rest = folder;
  while (!rest.empty() && rest != "/") {
    folders.push_back(rest);
    const auto slash = rest.rfind('/');
    rest = slash == std::string::npos ? "" : rest.substr(0, slash);
  }
  folders.emplace_back("/");
  return folders;
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
