#include "launch/host_resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

int read_topology(int cpu, const char* name, int otherwise) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
  int value = -1;
  file >> value;
  return file && value >= 0 ? value : otherwise;
}

std::vector<Cpu> usable_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {Cpu{}};
  std::vector<Cpu> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    // Without a topology every logical processor counts as a separate core.
    cpus.push_back({cpu, read_topology(cpu, "physical_package_id", 0), read_topology(cpu, "core_id", cpu)});
  }
  std::ranges::sort(cpus, {}, [](const Cpu& cpu) { return std::tuple(cpu.package, cpu.core, cpu.cpu); });
  return cpus;
}

int count_gpu_devices() {
  int count = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename().string();
    count += name.starts_with("nvidia") && parse_integer(name.substr(6)).has_value();
  }
  return count;
}

// Empty if it can be run.
std::string why_not_runnable(const fs::path& path) {
  if (!is_there(path)) return "there is no such file";
  if (is_folder(path)) return "it is a folder";
  if (access(path.c_str(), X_OK) != 0) {
    return "it is not executable (chmod +x, or launch its interpreter: python " + path.filename().string() + ")";
  }
  return "";
}

}  // namespace

HostFacts examine_host(const Environment& environment) {
  return {num_visible_gpus(count_gpu_devices(), environment), usable_cpus()};
}

int num_cores(const std::vector<Cpu>& cpus) {
  std::set<std::pair<int, int>> cores;
  for (const Cpu& cpu : cpus) cores.emplace(cpu.package, cpu.core);
  return static_cast<int>(cores.size());
}

int num_visible_gpus(int num_devices, const Environment& environment) {
  // Set but empty hides all GPUs: this is the one variable for which empty does not mean unset.
  const auto visible = environment.all().find("CUDA_VISIBLE_DEVICES");
  if (visible == environment.all().end()) return num_devices;
  int count = 0;
  for (const std::string& entry : split(visible->second, ',')) {
    const std::string word(trim(entry));
    const auto index = parse_integer(word);
    const bool by_uuid = word.starts_with("GPU-") || word.starts_with("MIG-");
    if (!by_uuid && (!index || *index < 0 || *index >= num_devices)) break;
    ++count;
  }
  return num_devices == 0 ? 0 : count;
}

std::string find_program(const std::string& name, const Environment& environment) {
  if (name.empty()) throw UsageError("the program's name is empty");
  if (name.find('/') != std::string::npos) {
    const std::string reason = why_not_runnable(name);
    if (!reason.empty()) throw UsageError("cannot run '" + name + "': " + reason);
    return name;
  }
  const std::string path = environment.find("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const std::string& folder : split(path, ':')) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (why_not_runnable(candidate).empty()) return candidate.string();
  }
  std::string message = "cannot run '" + name + "': no such program in PATH";
  if (is_there(name)) {
    const std::string reason = why_not_runnable(name);
    message += "; there is a file with that name here" + (reason.empty() ? ": write ./" + name : ", but " + reason);
  }
  throw UsageError(message);
}

std::vector<std::vector<int>> share_cpus(const std::vector<Cpu>& cpus, int num_ranks) {
  if (num_ranks < 1 || static_cast<int>(cpus.size()) < num_ranks) return {};
  // Whole cores are shared out; with fewer cores than ranks, single hyperthreads.
  std::vector<std::vector<int>> cores;
  const bool whole_cores = num_cores(cpus) >= num_ranks;
  const Cpu* last = nullptr;
  for (const Cpu& cpu : cpus) {
    const bool same_core = last != nullptr && last->package == cpu.package && last->core == cpu.core;
    if (!whole_cores || !same_core) cores.emplace_back();
    cores.back().push_back(cpu.cpu);
    last = &cpu;
  }
  std::vector<std::vector<int>> shares(static_cast<std::size_t>(num_ranks));
  for (std::size_t i = 0; i < cores.size(); ++i) {
    // Core i of C belongs to rank i * R / C: neighbours together, sizes within one of each other.
    auto& share = shares[i * shares.size() / cores.size()];
    share.insert(share.end(), cores[i].begin(), cores[i].end());
  }
  return shares;
}

int threads_per_rank(const std::vector<Cpu>& cpus, int num_ranks) {
  return std::max(1, num_cores(cpus) / std::max(1, num_ranks));
}

}  // namespace tessera
