#include "train/numerics.h"

#include <ATen/Context.h>

#include <cstdlib>

namespace tessera {
namespace {

// FlashAttention's backward then adds in one order, and cuDNN and cuBLAS use algorithms that give the same bits. For an
// operation without such a variant, torch prints a warning that names it.
void be_deterministic() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // read when the first handle is created
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  context.setDeterministicFillUninitializedMemory(false);  // no code here reads uninitialized memory
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

}  // namespace

std::vector<std::string> set_numerics(const TrainSettings& settings, at::Device device) {
  std::vector<std::string> notes;
  if (settings.precision.tf32) {
    at::globalContext().setAllowTF32CuBLAS(*settings.precision.tf32);
    at::globalContext().setAllowTF32CuDNN(*settings.precision.tf32);
    if (!device.is_cuda()) notes.emplace_back("--tf32 has no effect on a CPU");
  }
  if (settings.loop.full_determinism) {
    if (device.is_cuda()) be_deterministic();
    if (!device.is_cuda())
      notes.emplace_back("--full_determinism has no effect on a CPU, which always gives the same bits");
  }
  return notes;
}

}  // namespace tessera
