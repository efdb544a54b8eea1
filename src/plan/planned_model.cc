#include "plan/planned_model.h"

#include <fmt/format.h>

#include "parallel/model_parts.h"

namespace tessera {

std::vector<PlannedUnit> planned_units(torch::nn::Module& model, const std::vector<Unit>& units) {
  const auto of_unit = divide(model, units, {});
  std::vector<PlannedUnit> planned;
  for (std::size_t i = 0; i < of_unit.size(); ++i) {
    PlannedUnit& unit = planned.emplace_back(PlannedUnit{i < units.size() ? units[i].name : "root", {}});
    for (const UnitParameter& p : of_unit[i]) unit.parameters.push_back({p.name, p.parameter.sizes().vec(), p.group});
  }
  return planned;
}

PlannedModel planned_language_model(LanguageModel& model, const Json& config, const std::string& origin) {
  PlannedModel planned;
  planned.name = config.at("model_type").get<std::string>();
  planned.units = planned_units(model, model.units());
  planned.make_step = [=](const StepShape& shape) { return language_step_memory(config, origin, shape); };
  return planned;
}

PlannedModel planned_resnet50(ResNet50& model, std::int64_t image_size) {
  PlannedModel planned;
  planned.name = fmt::format("resnet50 at {} x {}", image_size, image_size);
  planned.units = planned_units(model, model.units());
  planned.make_step = [n = model.num_classes()](const StepShape& shape) { return resnet50_step_memory(n, shape); };
  for (const at::Tensor& buffer : model.buffers()) planned.buffer_bytes += static_cast<std::int64_t>(buffer.nbytes());
  planned.counts = "image";
  return planned;
}

}  // namespace tessera
