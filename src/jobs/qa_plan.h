// The memory of a question-answering run's largest pass.
#pragma once

#include "data/text/token_store.h"
#include "jobs/qa_files.h"
#include "plan/plan_report.h"
#include "tessera/world.h"

namespace tessera {

// A pass is a micro-batch or, if it `merges`, an update. The largest of the run, in the order in which it takes its
// rows.
PlanReport plan_of_rows(const TrainSettings& settings, const QaModel& model, const TokenStore& training,
                        const World& world, bool merges);

}  // namespace tessera
