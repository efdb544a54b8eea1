#include "monitor/machine_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "core/log.h"
#include "core/quantity.h"
#include "core/text.h"
#include "monitor/host_info.h"

namespace tessera {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
// NCCL's shared-memory transport uses about this much per rank; Docker's default is 64 MiB in all.
constexpr std::int64_t kShmPerRank = 32 * kMiB;
constexpr std::int64_t kDockerShm = 64 * kMiB;

using Problems = std::vector<Problem>;

std::string counted(int number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

const std::string* variable(const MachineFacts& facts, const std::string& name) {
  const auto found = facts.variables.find(name);
  return found == facts.variables.end() ? nullptr : &found->second;
}

// For messages; the value is untrusted.
std::string assignment(const std::string& name, const std::string& value) {
  return fmt::format("{}={}", name, printable(value));
}

void check_gpus(const MachineFacts& facts, Problems& problems) {
  if (!facts.gpus.empty()) {
    const int num_gpus = static_cast<int>(facts.gpus.size());
    if (facts.num_ranks_here > num_gpus) {
      problems.push_back(
          {fmt::format("{} would share {}", counted(facts.num_ranks_here, "rank"), counted(num_gpus, "GPU")),
           "NCCL refuses that: start one rank per GPU, or use --backend mpi"});
    }
    return;
  }
  if (facts.has_nvidia_driver && !facts.has_cuda_flavour) {
    problems.push_back(
        {"the GPU is not used: this build is the CPU flavour", "install the CUDA toolkit (nvcc) and build again"});
  } else if (facts.host.num_nvidia_devices > 0 && !facts.has_nvidia_driver) {
    problems.push_back({fmt::format("{} on the PCI bus, but no driver: CPU flavour",
                                    counted(facts.host.num_nvidia_devices, "NVIDIA GPU")),
                        "install or load the NVIDIA driver (nvidia-smi must work); in a container, pass the GPUs in "
                        "(docker run --gpus all)"});
  } else {
    problems.push_back(
        {"no GPU: CPU flavour", facts.no_gpu_reason.empty() ? "ranks communicate through MPI" : facts.no_gpu_reason});
  }
  if (facts.torch_has_cuda && facts.has_cuda_flavour && !facts.has_nvidia_driver) {
    problems.push_back({"torch and this build can use CUDA, but there is no driver",
                        "everything runs on the CPU; with a GPU in the machine, install its driver"});
  }
}

void check_cores(const MachineFacts& facts, Problems& problems) {
  const int cores = usable_cores(facts);
  if (facts.num_ranks_here > cores && facts.gpus.empty()) {
    problems.push_back({fmt::format("{} would share {}", counted(facts.num_ranks_here, "rank"), counted(cores, "core")),
                        fmt::format("they take turns on the cores and are not pinned ({}); for speed, start at most {}",
                                    facts.num_ranks_source, cores)});
  }
  if (facts.host.cpu.quota && facts.num_usable_processors > 0 &&
      std::ceil(*facts.host.cpu.quota) < facts.num_usable_processors) {
    problems.push_back({fmt::format("the cgroup allows the CPU time of {:g} cores, but {} processors are visible",
                                    *facts.host.cpu.quota, facts.num_usable_processors),
                        "choose the number of ranks and threads by the cgroup's limit"});
  }
  const std::string* threads = variable(facts, "OMP_NUM_THREADS");
  if (threads == nullptr) return;
  const auto number = parse_integer(std::string(trim(threads->substr(0, threads->find(',')))));
  if (!number || *number < 1) {
    problems.push_back({fmt::format("{} is not a number of threads", assignment("OMP_NUM_THREADS", *threads)),
                        "give a whole number of at least 1, or unset it"});
  } else if (const long long total = *number * std::max(1, facts.num_ranks_here); *number > 1 && total > cores) {
    problems.push_back({fmt::format("OMP_NUM_THREADS={} with {} is {} threads on {}", *number,
                                    counted(std::max(1, facts.num_ranks_here), "rank"), total, counted(cores, "core")),
                        "threads that share a core slow each other down; unset it, and Tessera divides the cores"});
  }
}

void check_memory(const MachineFacts& facts, Problems& problems) {
  const MemoryInfo& memory = facts.host.memory;
  if (memory.cgroup_limit_bytes && memory.total_bytes && *memory.cgroup_limit_bytes < *memory.total_bytes) {
    problems.push_back(
        {fmt::format("the cgroup allows {} of the host's {}", human_bytes(*memory.cgroup_limit_bytes),
                     human_bytes(*memory.total_bytes)),
         "a run that needs more is killed by the kernel; ask for more (Slurm: --mem, Docker: --memory)"});
  }
  const std::int64_t need = std::max(kDockerShm, kShmPerRank * facts.num_ranks_here);
  if (!memory.shm_total_bytes) {
    problems.push_back({"there is no /dev/shm", "ranks on one host communicate through it: mount a tmpfs there"});
  } else if (*memory.shm_total_bytes <= kDockerShm || memory.shm_available_bytes.value_or(0) < need) {
    problems.push_back(
        {fmt::format("/dev/shm is small: {} of {} free", human_bytes(memory.shm_available_bytes.value_or(0)),
                     human_bytes(*memory.shm_total_bytes)),
         "ranks on one host communicate through it: use docker run --shm-size=1g, or mount a larger tmpfs"});
  }
}

void check_interfaces(const MachineFacts& facts, Problems& problems) {
  if (const std::string* pattern = variable(facts, "NCCL_SOCKET_IFNAME")) {
    std::vector<std::string> all, up;
    for (const NetworkInterface& each : facts.host.interfaces) {
      all.push_back(each.name);
      if (each.is_up) up.push_back(each.name);
    }
    const std::string here = all.empty() ? "none" : join(all, ", ");
    const bool excludes = pattern->starts_with('^');
    const std::string given = assignment("NCCL_SOCKET_IFNAME", *pattern);
    if (excludes && select_names(*pattern, all).empty()) {
      problems.push_back({fmt::format("{} excludes every interface here", given), fmt::format("available: {}", here)});
    } else if (!excludes && select_names(*pattern, all).empty()) {
      problems.push_back({fmt::format("{} matches no interface here", given),
                          fmt::format("available: {}; name one that the other nodes can reach, or unset it", here)});
    } else if (select_names(*pattern, up).empty()) {
      problems.push_back({fmt::format("{} matches only interfaces that are down", given),
                          fmt::format("interfaces that are up: {}", up.empty() ? "none" : join(up, ", "))});
    }
  }
  if (const std::string* pattern = variable(facts, "NCCL_IB_HCA");
      pattern != nullptr && select_names(*pattern, facts.host.infiniband_devices).empty()) {
    const auto& devices = facts.host.infiniband_devices;
    problems.push_back(
        {fmt::format("{} matches no InfiniBand device here", assignment("NCCL_IB_HCA", *pattern)),
         devices.empty() ? "there is none: NCCL will use sockets" : "available: " + join(devices, ", ")});
  }
}

void check_start(const MachineFacts& facts, Problems& problems) {
  if (!facts.rank_mistake.empty()) {
    const bool has_size_alone = facts.rank_variables.contains("WORLD_SIZE") && !facts.rank_variables.contains("RANK");
    problems.push_back({"the rank variables are invalid",
                        facts.rank_mistake + (has_size_alone ? " (`tessera launch` ignores it)" : "")});
  }
  if (!facts.slurm_mistake.empty()) problems.push_back({"Slurm's node list cannot be read", facts.slurm_mistake});
  if (const std::string* address = variable(facts, "MASTER_ADDR");
      address != nullptr && !facts.master_addr_mistake.empty()) {
    problems.push_back(
        {fmt::format("{} cannot be resolved: {}", assignment("MASTER_ADDR", *address), facts.master_addr_mistake),
         "give a name or address that every node knows"});
  }
  const std::string* port = variable(facts, "MASTER_PORT");
  const bool is_told = facts.rank_mistake.find("MASTER_PORT=") != std::string::npos;
  if (port != nullptr && !port->empty() && !is_port(*port) && !is_told) {
    problems.push_back({fmt::format("{} is not a port", assignment("MASTER_PORT", *port)),
                        "give a number from 1 to 65535 that is free on the master's host, or unset it"});
  }
  if (!facts.no_mpi_reason.empty()) {
    problems.push_back({"no MPI for CPU ranks", facts.no_mpi_reason});
  } else if (facts.mpirun_path.empty()) {
    problems.push_back({"no mpirun in PATH",
                        "it starts CPU ranks: install openmpi-bin, load the site's module, or use srun --mpi=pmix"});
  }
}

void check_variables(const MachineFacts& facts, Problems& problems) {
  for (const auto& [name, meant] : facts.misspelt_variables) {
    problems.push_back(
        {fmt::format("no known program reads {}", printable(name)), fmt::format("did you mean {}?", meant)});
  }
  if (const std::string* devices = variable(facts, "CUDA_VISIBLE_DEVICES")) {
    const std::string given = assignment("CUDA_VISIBLE_DEVICES", *devices);
    if (const auto mistake = visible_devices_mistake(*devices)) {
      problems.push_back({fmt::format("{}: {}", given, *mistake),
                          "CUDA shows only the GPUs before it: give numbers such as 0,1, or unset it"});
    } else if (hides_every_gpu(*devices) && facts.has_nvidia_driver) {
      problems.push_back({fmt::format("{} hides every GPU", given), "unset it, or give numbers such as 0,1"});
    }
  }
  if (const std::string* log = variable(facts, "TESSERA_LOG"); log != nullptr && !log_spec_mistake(*log).empty()) {
    problems.push_back({fmt::format("{} is not a log level", assignment("TESSERA_LOG", *log)),
                        "every other command refuses it: " + printable(log_spec_mistake(*log), 400)});
  }
}

const std::string kShown[] = {"CUDA_VISIBLE_DEVICES", "TESSERA_LOG", "MASTER_ADDR", "MASTER_PORT"};
constexpr const char* kPrefixes[] = {"NCCL_", "TORCH_NCCL_", "OMP_", "UCX_", "OMPI_MCA_", "GLOO_"};
// mpirun hands its ranks the job's key in ..._precondition_transports.
constexpr const char* kSecretWords[] = {"secret", "token", "password", "passwd", "_key", "credential", "precondition"};

// Without NCCL_ and TORCH_NCCL_: the usual ones of NCCL, which has more (an unlisted one that resembles a listed one
// would be questioned), and all that torch 2.11's libraries name.
const std::vector<std::string> kOfNccl = split(
    "ALGO ALLOC_P2P_NET_LL_BUFFERS ASYNC_ERROR_HANDLING BLOCKING_WAIT BUFFSIZE CGA_CLUSTER_SIZE CHECK_POINTERS "
    "CHECKS_DISABLE COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_BLOCKING COMM_ID COMM_SHRINK_SHARE_RESOURCES "
    "COMM_SPLIT_SHARE_RESOURCES CONF_FILE CONNECT_ROUND_ROBIN CROSS_NIC CTA_POLICY CUMEM_ENABLE CUMEM_HOST_ENABLE "
    "DEBUG DEBUG_FILE DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT DEBUG_TIMESTAMP_LEVELS DESYNC_DEBUG DMABUF_ENABLE "
    "GDRCOPY_ENABLE GRAPH_DUMP_FILE GRAPH_FILE GRAPH_MIXING_SUPPORT GRAPH_REGISTER HOSTID IB_ADAPTIVE_ROUTING "
    "IB_ADDR_FAMILY IB_ADDR_RANGE IB_AR_THRESHOLD IB_CUDA_SUPPORT IB_DATA_DIRECT IB_DISABLE IB_ECE_ENABLE "
    "IB_FIFO_TC IB_GID_INDEX IB_HCA IB_MERGE_NICS IB_MERGE_VFS IB_PCI_RELAXED_ORDERING IB_PKEY "
    "IB_QPS_PER_CONNECTION IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS IB_ROCE_VERSION_NUM IB_SL IB_SPLIT_DATA_ON_QPS "
    "IB_TC IB_TIMEOUT IB_USE_INLINE IB_WARN_RAIL_LOCAL IGNORE_CPU_AFFINITY IGNORE_DISABLED_P2P "
    "L1_SHARED_MEMORY_CARVEOUT LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LEGACY_CUDA_REGISTER LIBRARY_PATH LL128_BUFFSIZE "
    "LL128_NTHREADS LL_BUFFSIZE LL_THRESHOLD LOCAL_REGISTER MAX_CTAS MAX_NCHANNELS MAX_NRINGS MAX_P2P_NCHANNELS "
    "MEM_SYNC_DOMAIN MIN_CTAS MIN_NCHANNELS MIN_NRINGS MIN_P2P_NCHANNELS MNNVL_CLIQUE_ID MNNVL_ENABLE MNNVL_UUID "
    "NCHANNELS_PER_NET_PEER NCHANNELS_PER_PEER NET NET_DISABLE_INTRA NET_FORCE_FLUSH NET_GDR_C2C NET_GDR_LEVEL "
    "NET_GDR_READ NET_MERGE_LEVEL NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD NET_PLUGIN NET_SHARED_BUFFERS "
    "NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NVB_DISABLE NVB_PRECONNECT NVLSTREE_MAX_CHUNKSIZE NVLS_CHUNKSIZE "
    "NVLS_ENABLE NVLS_NCHANNELS OOB_NET_ENABLE OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_DISABLE P2P_LEVEL "
    "P2P_LL_THRESHOLD P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PXN_LEVEL P2P_USE_CUDA_MEMCPY "
    "PROFILER_PLUGIN PROFILE_EVENT_MASK PROGRESS_APPENDOP_FREQ PROTO PXN_C2C PXN_DISABLE RAS_ADDR RAS_ENABLE "
    "RAS_TIMEOUT_FACTOR RINGS RUNTIME_CONNECT SET_STACK_SIZE SET_THREAD_NAME SHM_DISABLE SHM_LOCALITY "
    "SHM_USE_CUDA_MEMCPY SINGLE_PROC_MEM_REG_ENABLE SINGLE_RING_THRESHOLD SOCKET_FAMILY SOCKET_IFNAME "
    "SOCKET_NTHREADS SOCKET_POLL_TIMEOUT_MSEC SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC SOCKET_RCVBUF "
    "SOCKET_SNDBUF SYM_CTAS THREAD_THRESHOLDS TOPO_DUMP_FILE TOPO_FILE TREE_THRESHOLD TUNER_CONFIG_FILE "
    "TUNER_PLUGIN UID_STAGGER_RATE UID_STAGGER_THRESHOLD VERSION WARN_ENABLE_DEBUG_INFO WIN_ENABLE WIN_STRIDE "
    "WORK_ARGS_BYTES WORK_FIFO_BYTES WORK_FIFO_DEPTH",
    ' ');
const std::vector<std::string> kOfTorchNccl = split(
    "ASYNC_ERROR_HANDLING AVOID_RECORD_STREAMS BCAST_UNIQUEID BLOCKING_WAIT COORD_CHECK_MILSEC CUDA_EVENT_CACHE "
    "DEBUG_INFO_PIPE_FILE DEBUG_INFO_TEMP_FILE DESYNC_DEBUG DUMP_ON_TIMEOUT ENABLE_MONITORING ENABLE_TIMING "
    "EXTRA_DUMP_ON_EXEC HEARTBEAT_TIMEOUT_SEC HIGH_PRIORITY LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN NAN_CHECK "
    "NONBLOCKING_TIMEOUT PROPAGATE_ERROR RANKS_PER_ROOT RETHROW_CUDA_ERRORS "
    "SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING TRACE_BUFFER_SIZE TRACE_CPP_STACK USE_COMM_NONBLOCKING "
    "USE_TENSOR_REGISTER_ALLOCATOR_HOOK WAIT_TIMEOUT_DUMP_MILSEC",
    ' ');

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_shown(const std::string& name) {
  return std::ranges::find(kShown, name) != std::end(kShown) ||
         std::ranges::any_of(kPrefixes, [&](const char* prefix) { return name.starts_with(prefix); });
}

bool may_be_secret(const std::string& name) {
  if (name == "NCCL_IB_PKEY") return false;  // the index of a partition
  const std::string word = lower_case(name);
  return std::ranges::any_of(kSecretWords, [&](const char* each) { return word.find(each) != std::string::npos; });
}

// The name of NCCL or torch that `name` was meant to be; none if it is right or resembles none.
std::optional<std::string> meant_by(const std::string& name) {
  const std::string prefix = name.starts_with("TORCH_NCCL_") ? "TORCH_NCCL_" : "NCCL_";
  if (name.starts_with(prefix)) {
    const std::vector<std::string>& known = prefix == "NCCL_" ? kOfNccl : kOfTorchNccl;
    const std::string rest = name.substr(prefix.size());
    if (contains(known, rest)) return std::nullopt;
    const auto meant = nearest(rest, known);
    return meant ? std::optional(prefix + *meant) : std::nullopt;
  }
  // NCLL_DEBUG: only if the rest of the name is right, since this checks variables of any program.
  const std::size_t underscore = name.find('_');
  if (underscore == std::string::npos || !nearest(name.substr(0, underscore), {"NCCL"})) return std::nullopt;
  const std::string rest = name.substr(underscore + 1);
  return contains(kOfNccl, rest) ? std::optional("NCCL_" + rest) : std::nullopt;
}

}  // namespace

int usable_cores(const MachineFacts& facts) {
  int cores = facts.num_usable_cores > 0 ? facts.num_usable_cores : facts.host.cpu.num_processors;
  if (facts.host.cpu.quota) cores = std::min(cores, static_cast<int>(std::ceil(std::min(*facts.host.cpu.quota, 1e6))));
  return std::max(1, cores);
}

std::vector<Problem> find_problems(const MachineFacts& facts) {
  Problems problems;
  check_gpus(facts, problems);
  check_cores(facts, problems);
  check_memory(facts, problems);
  check_interfaces(facts, problems);
  check_start(facts, problems);
  check_variables(facts, problems);
  return problems;
}

Variables shown_variables(const Variables& all) {
  Variables result;
  for (const auto& [name, value] : all) {
    if (is_shown(name)) result.emplace(name, may_be_secret(name) ? "(set)" : value);
  }
  return result;
}

Variables misspelt_variables(const Variables& all) {
  Variables result;
  for (const auto& [name, value] : all) {
    if (const auto meant = meant_by(name)) result.emplace(name, *meant);
  }
  return result;
}

std::optional<std::string> visible_devices_mistake(const std::string& value) {
  if (hides_every_gpu(value)) return std::nullopt;
  std::set<std::string> seen;
  for (const std::string& part : split(value, ',')) {
    const std::string entry(trim(part));
    const auto number = parse_integer(entry);
    if (number == -1) break;  // CUDA reads no further
    if (!(number && *number >= 0) && !entry.starts_with("GPU-") && !entry.starts_with("MIG-")) {
      return fmt::format("'{}' is not a GPU number", printable(entry));
    }
    if (!seen.insert(entry).second) return fmt::format("{} appears twice", printable(entry));
  }
  return std::nullopt;
}

bool hides_every_gpu(const std::string& value) {
  const std::string first(trim(value.substr(0, value.find(','))));
  return trim(value).empty() || first == "-1" || first == "NoDevFiles";
}

bool is_port(const std::string& value) {
  const auto port = parse_integer(value);
  return port && *port >= 1 && *port <= 65535;
}

}  // namespace tessera
