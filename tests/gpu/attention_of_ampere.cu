// attention.cu as GPUs that have no wgmma run it.
#define TESSERA_WGMMA 0
#define attention_forward_cuda attention_forward_of_ampere
#define attention_backward_cuda attention_backward_of_ampere
#include "kernels/attention.cu"  // NOLINT
