// attention.cu as GPUs that have no wgmma run it.
#define TESSERA_WGMMA 0
#define attention_forward_cuda attention_forward_of_ampere
#define attention_backward_cuda attention_backward_of_ampere
#include "kernels/attention.cu"  // NOLINT

namespace tessera::kernels {

// This library has a CUDA runtime of its own, which alone knows of a launch that failed.
const char* error_of_ampere() {
  return cudaGetErrorString(cudaGetLastError());
}

}  // namespace tessera::kernels
