#include "train/engine_setup.h"

#include <set>
#include <string>

#include "parallel/unit_selection.h"

namespace tessera {

at::ScalarType scalar_type_of(NumberType type) {
  return type == NumberType::kFloat32 ? at::kFloat : type == NumberType::kFloat16 ? at::kHalf : at::kBFloat16;
}

EngineOptions engine_options(const TrainSettings& settings, const torch::nn::Module& model, at::Device device) {
  const SpreadSettings& spread = settings.spread;
  const PrecisionSettings& precision = settings.precision;
  EngineOptions options;
  options.placement = placement_of(spread.strategy, {.optimizer = spread.offload_optimizer,
                                                     .parameters = spread.offload_param,
                                                     .delayed_update = spread.delayed_update});
  // AMP: the parameters and their gradients are float32, and the model casts what it computes with.
  const bool is_amp = settings.job == Job::kResnetTinyimagenet;
  const NumberType compute = is_amp ? NumberType::kFloat32 : precision.compute;
  options.types = {scalar_type_of(compute), scalar_type_of(precision.reduce.value_or(compute)),
                   settings.loop.accumulation > 1 && settings.loop.merge_accumulation != MergeAccumulation::kOn};
  options.forward_prefetch = spread.forward_prefetch;
  options.backward_prefetch = spread.backward_prefetch == PrefetchInBackward::kNone     ? BackwardPrefetch::kNone
                              : spread.backward_prefetch == PrefetchInBackward::kBefore ? BackwardPrefetch::kPre
                                                                                        : BackwardPrefetch::kPost;
  options.sync_module_states = spread.sync_module_states;
  options.pin_memory = spread.pin_memory;
  options.device = device;
  std::set<std::string> exempt;
  for (const auto& item : model.named_parameters()) {
    if (item.value().dim() <= 1 && !is_amp) exempt.insert(item.key());
  }
  options.is_exempt_from_decay = [exempt](const std::string& name) { return exempt.contains(name); };
  return options;
}

std::vector<Unit> units_to_spread(const UnitModel& model, const SpreadSettings& spread) {
  switch (spread.wrap) {
    case UnitWrap::kNone:
      return {};
    case UnitWrap::kByClass:
      return select_units(model.units(), {.kinds = spread.wrap_classes});
    case UnitWrap::kBySize:
      return select_units(model.units(), {.min_num_parameters = spread.wrap_min_num_params});
    case UnitWrap::kBlocks:
      break;
  }
  return model.units();
}

OptimizerOptions optimizer_options(const OptimizerSettings& settings) {
  if (settings.kind == OptimizerKind::kSgd) {
    kernels::Sgd sgd;
    sgd.momentum = settings.momentum;
    sgd.nesterov = settings.nesterov;
    sgd.weight_decay = settings.weight_decay;
    return sgd;
  }
  kernels::AdamW adam;
  adam.beta1 = settings.beta1;
  adam.beta2 = settings.beta2;
  adam.eps = settings.epsilon;
  adam.weight_decay = settings.weight_decay;
  adam.decoupled = settings.kind == OptimizerKind::kAdamW;
  return adam;
}

}  // namespace tessera
