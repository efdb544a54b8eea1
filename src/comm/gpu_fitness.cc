#include "comm/gpu_fitness.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "comm/own_folder.h"
#include "core/text.h"

namespace tessera {
namespace {

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

}  // namespace

std::string CudaBuild::architectures_text() const {
  std::vector<std::string> texts;
  for (const int architecture : architectures)
    texts.push_back(fmt::format("{}.{}", architecture / 10, architecture % 10));
  return join(texts, ", ");
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

}  // namespace tessera
