#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/host.h"
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
