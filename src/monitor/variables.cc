#include "monitor/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/text.h"

namespace tessera {
namespace {

constexpr const char* kHeeded[] = {"CUDA_VISIBLE_DEVICES", "TESSERA_LOG", "MASTER_ADDR", "MASTER_PORT"};
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
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_heeded(const std::string& name) {
  return std::any_of(std::begin(kHeeded), std::end(kHeeded), [&](const char* each) { return name == each; }) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

bool may_be_secret(const std::string& name) {
  if (name == "NCCL_IB_PKEY") return false;  // the index of a partition
  const std::string word = lower_case(name);
  return std::any_of(std::begin(kSecretWords), std::end(kSecretWords),
                     [&](const char* each) { return word.find(each) != std::string::npos; });
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

Variables heeded_variables(const Variables& all) {
  Variables result;
  for (const auto& [name, value] : all) {
    if (is_heeded(name)) result.emplace(name, may_be_secret(name) ? "(set)" : value);
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
