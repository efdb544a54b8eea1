#include "train/numerics.h"

#include <ATen/Context.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <cstdlib>
#include <string>

namespace tessera {
namespace {

constexpr const char *kCublasConfig = "CUBLAS_WORKSPACE_CONFIG", *kDeterministic = ":4096:8";

// torch wants this variable before it calls cuBLAS deterministic, and looks once; but while it is set, torch compiles a
// regular expression at every product, which made steps 1.7 times as long. cuBLAS does not need it: torch gives each
// stream a workspace of its own. So it goes after the first product, also where the user set it. Another value is the
// user's wish to save memory, and stays.
void show_torch_cublas_config(at::Device device) {
  const char* config = ::getenv(kCublasConfig);
  if (config == nullptr || std::string(config) != kDeterministic) return;
  const at::Tensor one = at::ones({1, 1}, device);
  at::mm(one, one);
  ::unsetenv(kCublasConfig);
}

// FlashAttention's backward then adds in one order, and cuDNN and cuBLAS use algorithms that give the same bits. For an
// operation without such a variant, torch prints a warning that names it.
void be_deterministic() {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/true);
  context.setDeterministicFillUninitializedMemory(false);  // no code here reads uninitialized memory
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  ::setenv(kCublasConfig, kDeterministic, /*overwrite=*/0);
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
  if (device.is_cuda()) show_torch_cublas_config(device);
  return notes;
}

}  // namespace tessera
