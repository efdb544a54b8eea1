#include "comm/gpu_support.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "comm/gpu_fitness.h"
#include "comm/own_folder.h"
#include "core/text.h"

namespace tessera {
namespace {

struct Loaded {
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

Loaded load() {
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

const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

const GpuSupport* gpu_support() {
  return loaded().support;
}
const std::string& no_gpu_reason() {
  return loaded().reason;
}
bool gpus_are_unfit() {
  return loaded().gpus_are_unfit;
}

}  // namespace tessera
