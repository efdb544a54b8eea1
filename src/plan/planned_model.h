// A model as the memory plan sees it: its units' parameters, and the memory of its step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/language_model.h"
#include "model/resnet.h"
#include "model/step_memory.h"
#include "parallel/unit_layout.h"
#include "tessera/unit.h"

namespace tessera {

struct PlannedUnit {
  std::string name;
  std::vector<FlatLayout::Entry> parameters;
};

// The units of a model, the root last, as the engine makes them. Parameters may be on the meta device.
std::vector<PlannedUnit> planned_units(torch::nn::Module& model, const std::vector<Unit>& units);

struct PlannedModel {
  std::string name;
  std::vector<PlannedUnit> units;
  // The memory that its step takes for a micro-batch; empty: no activations.
  std::function<std::unique_ptr<StepMemory>(const StepShape&)> make_step;
  std::int64_t buffer_bytes = 0;
  std::string counts = "token";  // what StepShape::num_tokens is a number of
};

// `origin` names the config in messages.
PlannedModel planned_language_model(LanguageModel& model, const Json& config, const std::string& origin);
PlannedModel planned_resnet50(ResNet50& model, std::int64_t image_size);

}  // namespace tessera
