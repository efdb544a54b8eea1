#include "comm/gpu_support.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

namespace tessera {
namespace {

// The folder of libtessera.so (or of the program it is linked into).
std::filesystem::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&gpu_support), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::absolute(info.dli_fname).parent_path();
}

struct Loaded {
  const GpuSupport* support = nullptr;
  std::string reason;
};

Loaded load() {
  if (!std::filesystem::exists("/dev/nvidiactl"))
    return {nullptr, "this machine has no NVIDIA GPU (or no driver for it)"};
  const auto path = own_folder() / "libtessera_cuda.so";
  if (!std::filesystem::exists(path)) {
    return {nullptr, "this is the CPU flavour: to use the GPU, install the CUDA toolkit (nvcc) and build again"};
  }
  // Global, since torch_cuda's registrations serve the whole program; never closed.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return {nullptr, fmt::format("{} cannot be loaded: {}", path.string(), dlerror())};
  const auto make = reinterpret_cast<GpuSupportFunction>(dlsym(library, kGpuSupportSymbol));
  if (make == nullptr) return {nullptr, fmt::format("{} belongs to another version of Tessera", path.string())};
  const GpuSupport* support = make();
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

}  // namespace tessera
