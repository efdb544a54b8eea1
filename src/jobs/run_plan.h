// The memory of a run's steps before anything is allocated: for --dry_run and for --merge_accumulation auto.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "data/loading/text_rows.h"
#include "jobs/text_model.h"
#include "plan/plan_report.h"
#include "settings/train_settings.h"
#include "tessera/unit.h"
#include "tessera/world.h"

namespace tessera {

int ranks_of_node(const World& world);  // this rank's

// The memory that a rank can use: nine tenths of its GPU's, or half of its share of what the host has left. None:
// unknown.
std::optional<std::int64_t> memory_of_rank(const World& world);

// One row, the run's own strategy, at its largest pass, whose shape the job knows. `merges`: the micro-steps of an
// update run as one pass.
PlanReport plan_of_pass(const TrainSettings& settings, const UnitModel& model, PlannedModel planned,
                        const StepShape& pass, const World& world, bool merges);

// The same for a text model: the largest pass, in the order in which the run takes its rows.
PlanReport plan_of_rows(const TrainSettings& settings, const OpenedModel& model, const TextRows& training,
                        const World& world, bool merges);

// Rank 0 warns if the plan needs more than a rank can use. Throws Error with the status kOutOfMemory if this host's
// ranks need more of its memory than it has: the kernel would end one of them by SIGKILL, without saying why.
void check_plan(const World& world, const PlanReport& plan);

// With --gpu_memory: sets the number of units that stay on the GPU; rank 0 logs it. `plan` is the run's. Throws Error
// if a step takes more even with everything offloaded. Collective.
void use_gpu_memory(TrainSettings& settings, const std::function<PlanReport()>& plan, World& world);

// Whether the settings use the model's own units, for which the plan is made.
bool has_planned_units(const UnitModel& model, const WrapSettings& wrap);

// Whether the micro-steps of an update run as one pass, by the setting or, if it is auto, by the plan of such a pass;
// rank 0 logs the decision. Collective.
bool decide_merging(const TrainSettings& settings, const UnitModel& model,
                    const std::function<PlanReport()>& plan_of_merged, World& world);

}  // namespace tessera
