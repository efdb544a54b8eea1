#include "train/step_setup.h"

#include <set>
#include <string>

#include "parallel/model_parts.h"

namespace tessera {

at::ScalarType scalar_type_of(NumberType type) {
  return type == NumberType::kFloat32 ? at::kFloat : type == NumberType::kFloat16 ? at::kHalf : at::kBFloat16;
}

TrainStepOptions step_options(const TrainSettings& settings, const torch::nn::Module& model, at::Device device) {
  const PrecisionSettings& precision = settings.precision;
  TrainStepOptions options;
  options.spread = settings.spread;
  options.compute_type = precision.is_amp ? at::kFloat : scalar_type_of(precision.compute);
  if (precision.reduce) options.reduce_type = scalar_type_of(*precision.reduce);
  if (precision.compute == NumberType::kFloat16) options.loss_scale = precision.loss_scale;
  options.accumulates = settings.loop.accumulation > 1 && settings.loop.merge_accumulation != MergeAccumulation::kOn;
  options.recomputes = settings.loop.gradient_checkpointing;
  options.device = device;
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

OptimizerChoice optimizer_choice(const OptimizerSettings& settings) {
  return choose_optimizer(settings.optim, settings.numbers);
}

}  // namespace tessera
