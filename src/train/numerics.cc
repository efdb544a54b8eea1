#include "train/numerics.h"

#include <ATen/Context.h>

#include <cstdlib>

namespace tessera {
namespace {

// FlashAttention's backward then adds in one order, cuDNN and cuBLAS take algorithms that give the same bits. What
// torch has no such way for is told of in a warning that names the operation.
void be_deterministic() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);  // read when the first handle is made
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  context.setDeterministicFillUninitializedMemory(false);  // nothing here reads memory that it has not written
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
}

}  // namespace

std::vector<std::string> set_numerics(const TrainSettings& settings, at::Device device) {
  std::vector<std::string> notes;
  if (settings.precision.tf32) {
    at::globalContext().setAllowTF32CuBLAS(*settings.precision.tf32);
    at::globalContext().setAllowTF32CuDNN(*settings.precision.tf32);
    if (!device.is_cuda()) notes.emplace_back("--tf32 changes nothing here: a CPU has none");
  }
  if (settings.loop.full_determinism) {
    if (device.is_cuda()) be_deterministic();
    if (!device.is_cuda()) notes.emplace_back("--full_determinism changes nothing here: CPU ranks give the same bits");
  }
  return notes;
}

}  // namespace tessera
