// Models as the memory plan sees them.
#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "model/language_model.h"
#include "model/resnet.h"
#include "report/plan_report.h"

namespace tessera {

// `origin` names the config in messages.
PlannedModel planned_language_model(LanguageModel& model, const Json& config, const std::string& origin);
PlannedModel planned_resnet50(ResNet50& model, std::int64_t image_size);

}  // namespace tessera
