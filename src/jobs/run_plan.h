// The memory of a run's steps before anything is allocated: for --dry_run and for --merge_accumulation auto.
#pragma once

#include <cstdint>
#include <optional>

#include "data/text/token_store.h"
#include "jobs/qa_files.h"
#include "model/resnet.h"
#include "report/plan_report.h"
#include "settings/train_settings.h"
#include "tessera/world.h"

namespace tessera {

// The memory that a rank can use: nine tenths of its GPU's, or half of its share of what the host has left. None:
// unknown.
std::optional<std::int64_t> memory_of_rank(const World& world);

// One row, the run's own strategy, at its largest pass: as many of the longest rows as a pass has. `merges`: the
// micro-steps of an update run as one pass.
PlanReport plan_of_run(const TrainSettings& settings, const QaModel& model, const TokenStore& training,
                       const World& world, bool merges);

// The same for the image job: a pass is a micro-batch.
PlanReport plan_of_images(const TrainSettings& settings, ResNet50& model, std::int64_t num_images, const World& world);

// Whether the settings use the model's own units, for which the plan is made.
bool has_planned_units(const UnitModel& model, const WrapSettings& wrap);

// Whether the micro-steps of an update run as one pass, by the setting or, if it is auto, by the plan; rank 0 logs the
// decision. Collective.
bool decide_merging(const TrainSettings& settings, const QaModel& model, const TokenStore& training, World& world);

}  // namespace tessera
