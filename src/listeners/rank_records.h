// What every rank measured, gathered for run.json and for the summary at a run's end.
#pragma once

#include <string>
#include <vector>

#include "monitor/usage_timer.h"
#include "parallel/step_clock.h"
#include "record/run_record.h"
#include "tessera/world.h"

namespace tessera {

// By rank. `devices`: a name per rank. Collective; every rank gets the same.
std::vector<RankRecord> gather_rank_records(World& world, const StepTimes& times, const UsageReadings& usage,
                                            const std::vector<std::string>& devices);

}  // namespace tessera
