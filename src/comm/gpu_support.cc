#include "comm/gpu_support.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/host.h"
#include "core/text.h"

namespace tessera {
namespace {

struct LoadedGpus {
  const GpuSupport* support = nullptr;
  std::string reason;
  bool gpus_are_unfit = false;
};

// As the driver lists them: "Model: \t\t Tesla V100-SXM2-32GB".
std::vector<std::string> names_by_driver() {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", failed)) {
    std::ifstream file(entry.path() / "information");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("Model:")) names.emplace_back(trim(line.substr(6)));
    }
  }
  return names;
}

bool gpus_are_hidden() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible != nullptr && (*visible == '\0' || *visible == '-');
}

std::string why_unfit(const GpuSupport& support) {
  if (cuda_build() == nullptr) return {};
  std::vector<GpuInfo> gpus;
  for (int index = 0; index < support.num_gpus(); ++index) gpus.push_back(support.info(index));
  if (gpus.empty() && gpus_are_hidden()) return {};
  if (gpus.empty()) return unfit_driver_text(*cuda_build(), support.driver_version(), names_by_driver());
  return unfit_gpu_text(*cuda_build(), gpus);
}

LoadedGpus load_gpus() {
  if (!std::filesystem::exists("/dev/nvidiactl"))
    return {nullptr, "this machine has no NVIDIA GPU (or no driver for it)"};
  const auto path = own_folder() / "libtessera_cuda.so";
  if (!std::filesystem::exists(path)) {
    return {nullptr,
            "this is the CPU flavour: to use the GPU, install the wheel, or build where the CUDA toolkit (nvcc) is"};
  }
  // Global, since torch_cuda's registrations serve the whole program; never closed.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    // A torch of another CUDA, or without it.
    return {nullptr, fmt::format("{} cannot be loaded: {}", path.string(), dlerror()),
            /*gpus_are_unfit=*/!gpus_are_hidden()};
  }
  const auto make = reinterpret_cast<GpuSupportFunction>(dlsym(library, kGpuSupportSymbol));
  if (make == nullptr) return {nullptr, fmt::format("{} belongs to another version of Tessera", path.string())};
  const GpuSupport* support = make();
  const std::string unfit = why_unfit(*support);
  if (!unfit.empty()) return {nullptr, unfit, /*gpus_are_unfit=*/true};
  if (support->num_gpus() == 0) return {nullptr, "no GPU is visible to this process (CUDA_VISIBLE_DEVICES?)"};
  return {support, {}};
}

const LoadedGpus& loaded_gpus() {
  static const LoadedGpus once = load_gpus();
  return once;
}

constexpr int kOldestOfCuda13 = 75;  // it does not compile for V100 any more
constexpr int kOldestOfOurs = 70;    // half types in our kernels need it

int architecture_of(const GpuInfo& gpu) {  // "7.0" -> 70
  const std::vector<std::string> parts = split(gpu.compute_capability, '.');
  return 10 * std::atoi(parts.front().c_str()) + (parts.size() > 1 ? std::atoi(parts[1].c_str()) : 0);
}

std::string build_for(const std::string& architectures) {
  return fmt::format("build Tessera with a torch of CUDA 12.6 and nvcc 12 for {} (docs/install.md, Older GPUs)",
                     architectures);
}

std::string key_of(int rank) {
  return fmt::format("tessera/gpu/{}", rank);
}

}  // namespace

const GpuSupport* gpu_support() {
  return loaded_gpus().support;
}
const std::string& no_gpu_reason() {
  return loaded_gpus().reason;
}
bool gpus_are_unfit() {
  return loaded_gpus().gpus_are_unfit;
}

std::string CudaBuild::architectures_text() const {
  return join(texts_of(architectures, [](int each) { return fmt::format("{}.{}", each / 10, each % 10); }), ", ");
}

const CudaBuild* cuda_build() {
#ifdef TESSERA_CUDA_VERSION
  static const CudaBuild build{TESSERA_CUDA_VERSION, {TESSERA_CUDA_ARCHITECTURES}};
  static const bool is_there =
      std::filesystem::exists(own_folder() / "libtessera_cuda.so");  // packages may leave it out
  return is_there ? &build : nullptr;
#else
  return nullptr;
#endif
}

std::string cuda_flavour_text() {
  const CudaBuild* build = cuda_build();
  if (build == nullptr) return {};
  return fmt::format("CUDA {}, for GPUs of compute capability {} and newer", build->cuda, build->architectures_text());
}

std::string unfit_gpu_text(const CudaBuild& build, const std::vector<GpuInfo>& gpus) {
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    const int architecture = architecture_of(gpus[index]);
    if (architecture >= build.architectures.front()) continue;
    const std::string way = architecture < kOldestOfOurs ? "it is too old for Tessera"
                            : architecture < kOldestOfCuda13
                                ? "CUDA 13 has no code for it: " + build_for("70, 80, 90")
                                : fmt::format("build Tessera for it (-DCMAKE_CUDA_ARCHITECTURES={})", architecture);
    return fmt::format(
        "GPU {} is a {} of compute capability {}, and this Tessera has code for {} and newer; {}; or leave it out "
        "(CUDA_VISIBLE_DEVICES)",
        index, gpus[index].name, gpus[index].compute_capability, build.architectures_text(), way);
  }
  return {};
}

std::string unfit_driver_text(const CudaBuild& build, const std::string& driver,
                              const std::vector<std::string>& names) {
  if (std::atoi(driver.c_str()) >= std::atoi(build.cuda.c_str())) return {};  // minor versions work with each other
  if (std::atoi(driver.c_str()) == 0) {
    return "there is an NVIDIA driver, but its libcuda is not here: start the container with --nv (Apptainer) or "
           "--gpus all "
           "(Docker)";
  }
  return fmt::format(
      "the driver of {} supports CUDA up to {}, and this Tessera is built for CUDA {}; ask for a newer "
      "driver, or {}",
      names.empty() ? "this machine" : join(names, ", "), driver, build.cuda, build_for("70, 80, 90"));
}

void refuse_shared_gpus(c10d::Store& store, int rank, const std::vector<std::string>& hosts, const std::string& gpu) {
  store.set(key_of(rank), gpu);
  const std::string& own_host = hosts[static_cast<std::size_t>(rank)];
  std::map<std::string, std::vector<int>> ranks_of;  // by GPU
  int num_here = 0;
  for (int other = 0; other < static_cast<int>(hosts.size()); ++other) {
    if (hosts[static_cast<std::size_t>(other)] != own_host) continue;
    const std::vector<std::uint8_t> found = store.get(key_of(other));
    ranks_of[std::string(found.begin(), found.end())].push_back(other);
    ++num_here;
  }
  for (const auto& [shared, ranks] : ranks_of) {
    if (ranks.size() == 1) continue;
    throw UsageError(fmt::format(
        "ranks {} on host {} would share one GPU ({}): the {} ranks there see {} GPU{}; start one rank per "
        "GPU, or give --share_gpus",
        format_ranges(ranks), own_host, shared, num_here, ranks_of.size(), ranks_of.size() == 1 ? "" : "s"));
  }
}

}  // namespace tessera
