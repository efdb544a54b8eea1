#include "kernels/cuda_kernels.h"

#include "core/error.h"

namespace tessera::kernels {
namespace {

const CudaKernels* registered_kernels = nullptr;

}  // namespace

const CudaKernels& cuda_kernels() {
  if (registered_kernels == nullptr) {
    throw Error(
        "a kernel got a CUDA tensor, but libtessera_cuda.so is not loaded: build with the CUDA toolkit (nvcc) "
        "installed, and call gpu_support() before creating CUDA tensors");
  }
  return *registered_kernels;
}

void register_cuda_kernels(const CudaKernels& kernels) {
  registered_kernels = &kernels;
}

}  // namespace tessera::kernels
