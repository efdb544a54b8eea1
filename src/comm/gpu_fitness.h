// Which GPUs this build can use, and what to tell the owner of another.
#pragma once

#include <string>
#include <vector>

#include "comm/gpu_support.h"

namespace tessera {

// What the CUDA flavour was compiled with: {"13.0", {80, 90}}.
struct CudaBuild {
  std::string cuda;
  std::vector<int> architectures;  // ascending; newer GPUs translate the last one's code when they load it

  std::string architectures_text() const;  // "8.0, 9.0"
};
// Null: this build has no CUDA flavour.
const CudaBuild* cuda_build();
// "CUDA 13.0, for GPUs of compute capability 8.0, 9.0 and newer"; empty if there is none.
std::string cuda_flavour_text();

// Why one of these GPUs cannot be used, and what can be done; empty if all fit.
std::string unfit_gpu_text(const CudaBuild& build, const std::vector<GpuInfo>& gpus);
// Why the driver, which supports CUDA up to `driver` ("12.2"), cannot be used; empty if it can. `names`: of the GPUs,
// as the driver lists them.
std::string unfit_driver_text(const CudaBuild& build, const std::string& driver, const std::vector<std::string>& names);

}  // namespace tessera
