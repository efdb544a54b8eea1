#include "train/step_setup.h"

#include <ATen/Context.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>

#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "parallel/model_parts.h"

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

TrainStepOptions step_options(const TrainSettings& settings, const torch::nn::Module& model, at::Device device,
                              ParameterSource first_values) {
  const PrecisionSettings& precision = settings.precision;
  const LoopSettings& loop = settings.loop;
  const at::ScalarType compute = precision.is_amp ? at::kFloat : scalar_type_of(precision.compute);
  TrainStepOptions options;
  options.spread = settings.spread;
  options.types = {compute, precision.reduce ? scalar_type_of(*precision.reduce) : compute,
                   loop.accumulation > 1 && loop.merge_accumulation != MergeAccumulation::kOn};
  if (precision.compute == NumberType::kFloat16) options.loss_scale = precision.loss_scale;
  options.recomputes = loop.gradient_checkpointing;
  options.device = device;
  options.first_values = std::move(first_values);
  if (settings.optimizer.decays_all) return options;
  std::set<std::string> exempt;
  for (const auto& item : model.named_parameters()) {
    if (item.value().dim() <= 1) exempt.insert(item.key());
  }
  options.is_exempt_from_decay = [exempt](const std::string& name) { return exempt.contains(name); };
  return options;
}

std::vector<Unit> units_to_spread(const UnitModel& model, const WrapSettings& wrap) {
  switch (wrap.wrap) {
    case UnitWrap::kNone:
      return {};
    case UnitWrap::kByClass:
      return select_units(model.units(), {.kinds = wrap.classes});
    case UnitWrap::kBySize:
      return select_units(model.units(), {.min_num_parameters = wrap.min_num_params});
    case UnitWrap::kBlocks:
      break;
  }
  return model.units();
}

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
