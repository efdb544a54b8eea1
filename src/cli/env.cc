// `tessera env`: this machine as Tessera sees it, with advice for each problem found; and `tessera --version`.
#include <ATen/Version.h>
#include <fmt/format.h>
#include <link.h>
#include <netdb.h>
#include <torch/version.h>

#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/experiment_command.h"
#include "comm/gpu_support.h"
#include "comm/mpi_support.h"
#include "comm/rank_env.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/output.h"
#include "core/text.h"
#include "core/version.h"
#include "launch/host_resources.h"
#include "monitor/machine_facts.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Only these and those of monitor/machine_facts.h are ever shown: others may hold secrets.
constexpr std::string_view kRankVariables =
    "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK NODE_RANK TESSERA_LAUNCHED OMPI_COMM_WORLD_RANK "
    "OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_LOCAL_SIZE PMIX_RANK SLURM_PROCID SLURM_LOCALID "
    "SLURM_NODEID";
constexpr std::string_view kSlurmVariables =
    "SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_PARTITION SLURM_NNODES SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_STEP_ID "
    "SLURM_CPUS_PER_TASK SLURM_MEM_PER_NODE SLURM_GPUS SLURM_GPUS_ON_NODE SLURM_JOB_NODELIST";

Variables those_set(const Environment& environment, std::string_view names) {
  Variables found;
  for (const std::string& name : split(names, ' ')) {
    // An empty variable counts as set: whoever looks for a mistake wants to see it.
    const auto entry = environment.all().find(name);
    if (entry != environment.all().end()) found.insert(*entry);
  }
  return found;
}

// The result of `question`, or what it threw, as text: a broken environment is shown and never fatal.
template <typename Question>
std::string answer(const Question& question) {
  try {
    return question();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return fmt::format("unknown ({})", text.substr(0, text.find('\n')));
  }
}

// Where a library of this process was loaded from; empty: it was not.
fs::path folder_of_library(const std::string& name) {
  struct Search {
    std::string name;
    fs::path folder;
  } search{name, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        Search& wanted = *static_cast<Search*>(data);
        const fs::path path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (path.filename() != wanted.name) return 0;
        wanted.folder = path.parent_path();
        return 1;
      },
      &search);
  return search.folder;
}

// Why a host name cannot be resolved; empty if it can. If no name server answers in time, the thread is left behind.
std::string resolution_mistake(const std::string& name) {
  auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> result = promise->get_future();
  std::thread([promise, name] {
    addrinfo* addresses = nullptr;
    const int code = getaddrinfo(name.c_str(), nullptr, nullptr, &addresses);
    if (code == 0) freeaddrinfo(addresses);
    promise->set_value(code == 0 ? "" : gai_strerror(code));
  }).detach();
  constexpr auto kPatience = std::chrono::seconds(5);
  return result.wait_for(kPatience) == std::future_status::ready ? result.get() : "no name server answered within 5 s";
}

void gather_gpus(MachineFacts& facts) {
  facts.torch_has_cuda = is_there(folder_of_library("libtorch_cpu.so") / "libtorch_cuda.so");
  facts.has_nvidia_driver = is_there("/dev/nvidiactl");
  facts.has_cuda_flavour = is_there(folder_of_library("libtessera.so") / "libtessera_cuda.so");
  facts.cuda_flavour = cuda_flavour_text();
  try {
    const GpuSupport* gpus = gpu_support();
    facts.no_gpu_reason = no_gpu_reason();
    if (gpus == nullptr) return;
    facts.cuda_runtime = answer([&] { return gpus->cuda_version(); });
    facts.cuda_driver = answer([&] { return gpus->driver_version(); });
    facts.nccl_version = answer([&] { return gpus->nccl_version(); });
    const int num_gpus = gpus->num_gpus();
    for (int i = 0; i < num_gpus; ++i) {
      const GpuInfo info = gpus->info(i);
      GpuFacts gpu{info.name, info.compute_capability, info.memory_bytes, {}};
      for (int other = 0; other < num_gpus; ++other)
        gpu.can_access.push_back(other == i || gpus->can_access_peer(i, other));
      facts.gpus.push_back(std::move(gpu));
    }
  } catch (const std::exception& error) {
    facts.no_gpu_reason = error.what();
  }
}

void gather_mpi(const Environment& environment, MachineFacts& facts) {
  facts.mpirun_path = find_open_mpi(environment).mpirun;
  facts.mpi_version = mpi_library_version();
  facts.no_mpi_reason = no_mpi_reason();
  if (const MpiSupport* mpi = mpi_support()) {
    facts.mpi_library = mpi->library();
    facts.mpi_built_for = mpi->version_built_for();
  }
}

void gather_ranks(const Environment& environment, int nproc_per_node, MachineFacts& facts) {
  facts.rank_variables = those_set(environment, kRankVariables);
  std::optional<RankEnv> self;
  try {
    self = discover_rank(environment);
    facts.rank_meaning = fmt::format("rank {} of {} ({})", self->rank, self->world_size, self->source);
  } catch (const std::exception& error) {
    facts.rank_mistake = error.what();
  }
  if (nproc_per_node > 0) {
    facts.num_ranks_here = nproc_per_node;
    facts.num_ranks_source = "--nproc_per_node";
  } else if (const auto tasks = environment.find("SLURM_NTASKS_PER_NODE");
             tasks && parse_integer(*tasks).value_or(0) > 0) {
    facts.num_ranks_here = static_cast<int>(std::min<long long>(*parse_integer(*tasks), 1'000'000));
    facts.num_ranks_source = "SLURM_NTASKS_PER_NODE";
  } else if (self && self->world_size > 1) {
    // If nothing is known about nodes, all ranks may be here.
    const int nodes = std::max(1, self->num_nodes.value_or(1));
    facts.num_ranks_here = self->local_size.value_or((self->world_size + nodes - 1) / nodes);
    facts.num_ranks_source = self->source;
  }
}

void gather_slurm(const Environment& environment, MachineFacts& facts) {
  facts.slurm = those_set(environment, kSlurmVariables);
  const auto nodelist = environment.find("SLURM_JOB_NODELIST");
  if (!nodelist) return;
  try {
    facts.slurm_hosts = expand_nodelist(*nodelist);
  } catch (const std::exception& error) {
    facts.slurm_mistake = error.what();
  }
}

MachineFacts gather_facts(const Environment& environment, int nproc_per_node) {
  MachineFacts facts;
  facts.host = read_host_info();
  const HostFacts cpus = examine_host(environment);
  facts.num_usable_processors = static_cast<int>(cpus.cpus.size());
  facts.num_usable_cores = num_cores(cpus.cpus);
  facts.tessera_version = kVersion;
  facts.torch_version = TORCH_VERSION;
  gather_gpus(facts);
  gather_mpi(environment, facts);
  gather_slurm(environment, facts);
  gather_ranks(environment, nproc_per_node, facts);
  facts.variables = shown_variables(environment.all());
  facts.misspelt_variables = misspelt_variables(environment.all());
  if (const auto address = environment.find("MASTER_ADDR")) facts.master_addr_mistake = resolution_mistake(*address);
  return facts;
}

struct EnvSettings {
  bool as_json = false;
  int nproc_per_node = 0;
};

void declare(Schema& schema, EnvSettings& s) {
  schema.boolean("json", &s.as_json, "print one JSON object");
  schema.integer("nproc_per_node", &s.nproc_per_node,
                 "check the machine for this many ranks; 0: as many as the environment says",
                 {.preset = "0", .at_least = 0, .at_most = 1'000'000});
}

// The exit status is 0 whatever the advice: it reports, it does not judge.
int run_env(Schema&, EnvSettings& s) {
  const MachineFacts facts = gather_facts(Environment::of_process(), s.nproc_per_node);
  const std::vector<Problem> problems = find_problems(facts);
  // Variables may hold any bytes, JSON only UTF-8.
  print_out(s.as_json ? json_text(machine_json(facts, problems), 2) + "\n" : machine_text(facts, problems));
  return 0;
}

// The headers' version is known when compiling; the library that was loaded names its own among its build settings.
std::string running_torch_version() {
  constexpr std::string_view kName = "TORCH_VERSION=";
  const std::string settings = at::show_config();
  const std::size_t start = settings.find(kName);
  if (start == std::string::npos) return "of unknown version";
  return settings.substr(start + kName.size(), settings.find_first_of(", \n", start) - start - kName.size());
}

}  // namespace

Command env_command() {
  return with_settings<EnvSettings>(
      {.name = "env",
       .summary = "show what this machine offers, and what is wrong with it",
       .about = "show this machine as Tessera sees it, and advice for each problem found"},
      declare, run_env);
}

std::string version_text() {
  const std::string cuda = cuda_flavour_text(), mpi = mpi_library_version();
  return fmt::format("{}\ntorch {}, built with {}\n{}\n{}\n", this_program().version_line(), running_torch_version(),
                     TORCH_VERSION, cuda.empty() ? "no CUDA flavour" : cuda,
                     mpi.empty() ? "no MPI: `tessera env` says why" : mpi);
}

}  // namespace tessera
