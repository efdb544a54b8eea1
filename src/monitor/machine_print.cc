#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/text.h"
#include "monitor/machine_facts.h"

namespace tessera {
namespace {

// A variable's value is cut at printable()'s 200 bytes; sentences that quote several values get more room.
constexpr std::size_t kMaxSentence = 1000;

std::string or_unknown(const std::optional<std::string>& text) {
  return text && !text->empty() ? *text : "unknown";
}
std::string or_unknown(const std::optional<std::int64_t>& bytes) {
  return bytes ? human_bytes(*bytes) : "unknown";
}
std::string or_unknown(int number) {
  return number > 0 ? std::to_string(number) : "unknown";
}

class Page {
 public:
  void title(const std::string& text) { text_ += fmt::format("{}{}\n", text_.empty() ? "" : "\n", text); }
  void line(const std::string& name, const std::string& value) { text_ += fmt::format("  {:<18} {}\n", name, value); }
  void line(const std::string& text) { text_ += fmt::format("  {}\n", text); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void write_host(Page& page, const MachineFacts& facts) {
  const HostInfo& host = facts.host;
  page.title("Host");
  page.line("name", or_unknown(host.host_name));
  page.line("operating system", or_unknown(host.os_name));
  page.line("kernel", fmt::format("{} ({})", or_unknown(host.kernel), or_unknown(host.architecture)));
  page.line("CPU", or_unknown(host.cpu.model));
  page.line("processors", fmt::format("{}; usable: {} on {} cores", or_unknown(host.cpu.num_processors),
                                      or_unknown(facts.num_usable_processors), or_unknown(facts.num_usable_cores)));
  page.line("CPU quota", host.cpu.quota ? fmt::format("{:g} cores", *host.cpu.quota) : "none");
  page.line("memory", fmt::format("{}, {} available", or_unknown(host.memory.total_bytes),
                                  or_unknown(host.memory.available_bytes)));
  page.line("cgroup limit", host.memory.cgroup_limit_bytes
                                ? fmt::format("{}, {} left", human_bytes(*host.memory.cgroup_limit_bytes),
                                              or_unknown(host.memory.cgroup_available_bytes))
                                : "none");
  page.line("/dev/shm", fmt::format("{}, {} free", or_unknown(host.memory.shm_total_bytes),
                                    or_unknown(host.memory.shm_available_bytes)));
}

void write_software(Page& page, const MachineFacts& facts) {
  page.title("Software");
  page.line("Tessera", facts.tessera_version);
  page.line("torch", facts.torch_version + (facts.torch_has_cuda ? " (with CUDA)" : " (CPU only)"));
  page.line("flavour", facts.gpus.empty() ? fmt::format("CPU: {}", facts.no_gpu_reason) : "CUDA");
  page.line("built for", facts.cuda_flavour.empty() ? "CPUs" : facts.cuda_flavour);
  if (!facts.gpus.empty()) {
    page.line("CUDA", fmt::format("runtime {}, driver up to {}", facts.cuda_runtime, facts.cuda_driver));
    page.line("NCCL", facts.nccl_version);
  }
  page.line("MPI", facts.mpi_version.empty() ? "none"
                                             : fmt::format("{} in {} (built for {})", facts.mpi_version,
                                                           facts.mpi_library, facts.mpi_built_for));
  page.line("mpirun", facts.mpirun_path.empty() ? "not in PATH" : facts.mpirun_path);
}

void write_gpus(Page& page, const MachineFacts& facts) {
  page.title("GPUs");
  if (facts.gpus.empty()) page.line("none");
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    const GpuFacts& gpu = facts.gpus[i];
    page.line(fmt::format("GPU {}", i), fmt::format("{}, {}, compute capability {}", gpu.name,
                                                    human_bytes(gpu.memory_bytes), gpu.compute_capability));
  }
  if (facts.gpus.size() < 2) return;
  page.line("direct access to the other GPU's memory (peer access):");
  std::string columns = "       ";
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) columns += fmt::format(" {:>5}", fmt::format("GPU {}", i));
  page.line(columns);
  for (std::size_t i = 0; i < facts.gpus.size(); ++i) {
    std::string row = fmt::format("{:<7}", fmt::format("GPU {}", i));
    for (std::size_t j = 0; j < facts.gpus.size(); ++j) {
      row += fmt::format(" {:>5}", i == j ? "-" : facts.gpus[i].can_access[j] ? "yes" : "no");
    }
    page.line(row);
  }
}

void write_network(Page& page, const MachineFacts& facts) {
  page.title("Network");
  for (const NetworkInterface& each : facts.host.interfaces) {
    const std::string speed = each.speed_mbit ? fmt::format(", {} Mbit/s", *each.speed_mbit) : "";
    page.line(each.name, fmt::format("{}{}{}{}", each.is_up ? "up" : "down", speed, each.addresses.empty() ? "" : ", ",
                                     join(each.addresses, " ")));
  }
  if (facts.host.interfaces.empty()) page.line("no interface found");
  if (!facts.host.infiniband_devices.empty()) page.line("InfiniBand", join(facts.host.infiniband_devices, ", "));
}

void write_variables(Page& page, const std::string& title, const Variables& variables) {
  page.title(title);
  if (variables.empty()) page.line("none");
  for (const auto& [name, value] : variables) page.line(fmt::format("{}={}", printable(name), printable(value)));
}

void write_start(Page& page, const MachineFacts& facts) {
  write_variables(page, "Slurm allocation", facts.slurm);
  if (!facts.slurm_hosts.empty()) page.line(fmt::format("nodes: {}", join(facts.slurm_hosts, " ")));
  write_variables(page, "Rank variables", facts.rank_variables);
  page.line(facts.rank_mistake.empty() ? "meaning: " + facts.rank_meaning
                                       : "contradiction: " + printable(facts.rank_mistake, kMaxSentence));
  write_variables(page, "Variables that are read", facts.variables);
}

void write_verdict(Page& page, const std::vector<Problem>& problems) {
  page.title("Verdict");
  if (problems.empty()) page.line("no problems found");
  for (const Problem& problem : problems) {
    page.line(
        fmt::format("{}\n      {}", printable(problem.what, kMaxSentence), printable(problem.advice, kMaxSentence)));
  }
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
Json or_null(int number) {
  return number > 0 ? Json(number) : Json(nullptr);
}

Json host_json(const MachineFacts& facts) {
  const HostInfo& host = facts.host;
  const MemoryInfo& memory = host.memory;
  return {{"name", host.host_name},
          {"operating_system", host.os_name},
          {"kernel", host.kernel},
          {"architecture", host.architecture},
          {"cpu",
           {{"model", host.cpu.model},
            {"processors", or_null(host.cpu.num_processors)},
            {"usable_processors", or_null(facts.num_usable_processors)},
            {"usable_cores", or_null(facts.num_usable_cores)},
            {"quota_cores", host.cpu.quota}}},
          {"memory",
           {{"total_bytes", memory.total_bytes},
            {"available_bytes", memory.available_bytes},
            {"cgroup_limit_bytes", memory.cgroup_limit_bytes},
            {"cgroup_available_bytes", memory.cgroup_available_bytes},
            {"shm_total_bytes", memory.shm_total_bytes},
            {"shm_available_bytes", memory.shm_available_bytes}}}};
}

}  // namespace

std::string machine_text(const MachineFacts& facts, const std::vector<Problem>& problems) {
  Page page;
  write_host(page, facts);
  write_software(page, facts);
  write_gpus(page, facts);
  write_network(page, facts);
  write_start(page, facts);
  write_verdict(page, problems);
  return page.text();
}

Json machine_json(const MachineFacts& facts, const std::vector<Problem>& problems) {
  Json json = {{"host", host_json(facts)},
               {"software",
                {{"tessera", facts.tessera_version},
                 {"torch", facts.torch_version},
                 {"torch_has_cuda", facts.torch_has_cuda},
                 {"flavour", facts.gpus.empty() ? "cpu" : "cuda"},
                 {"no_gpu_reason", or_null(facts.no_gpu_reason)},
                 {"built_for", or_null(facts.cuda_flavour)},
                 {"cuda_runtime", or_null(facts.cuda_runtime)},
                 {"cuda_driver", or_null(facts.cuda_driver)},
                 {"nccl", or_null(facts.nccl_version)},
                 {"mpi", or_null(facts.mpi_version)},
                 {"mpi_library", or_null(facts.mpi_library)},
                 {"mpi_built_for", or_null(facts.mpi_built_for)},
                 {"mpirun", or_null(facts.mpirun_path)}}}};
  json["gpus"] = Json::array();
  for (const GpuFacts& gpu : facts.gpus) {
    json["gpus"].push_back({{"name", gpu.name},
                            {"memory_bytes", gpu.memory_bytes},
                            {"compute_capability", gpu.compute_capability},
                            {"can_access", gpu.can_access}});
  }
  json["interfaces"] = Json::array();
  for (const NetworkInterface& each : facts.host.interfaces) {
    json["interfaces"].push_back({{"name", each.name},
                                  {"up", each.is_up},
                                  {"loopback", each.is_loopback},
                                  {"speed_mbit", each.speed_mbit},
                                  {"addresses", each.addresses}});
  }
  json["infiniband"] = facts.host.infiniband_devices;
  json["slurm"] = {{"variables", facts.slurm}, {"nodes", facts.slurm_hosts}};
  json["ranks"] = {{"variables", facts.rank_variables},
                   {"meaning", or_null(facts.rank_meaning)},
                   {"contradiction", or_null(facts.rank_mistake)},
                   {"here", or_null(facts.num_ranks_here)}};
  json["variables"] = facts.variables;
  json["problems"] = Json::array();
  for (const Problem& problem : problems)
    json["problems"].push_back({{"problem", problem.what}, {"advice", problem.advice}});
  return json;
}

}  // namespace tessera
