// Around the loop of every job: signals, the end of a run told to whoever listens, what is said when memory is out.
#pragma once

#include <functional>
#include <string>

#include "cli/plan_print.h"
#include "cli/train_reports.h"
#include "core/error.h"
#include "tessera/world.h"
#include "train/listener.h"
#include "train/trainer.h"

namespace tessera {

// trainer.run(), then unless a signal has stopped it `save` (the best model, its folder) and `after` (its answers; left
// out where a signal has come since). Tells the listeners how it ended. Returns the exit status: 0, or 128 + signal of
// a run that has not reached its last step. Collective. Throws OutputError at the end of a run whose lines could not be
// printed.
int run_to_end(World& world, const TrainRun& run, Trainer& trainer, Console& console, Listeners& listeners,
               const std::function<void()>& save, const std::function<void()>& after);

// Whether an error is a want of memory: torch's allocators' (GPU, pinned, CPU) or std::bad_alloc, whatever context has
// been put around it.
bool is_out_of_memory(const std::exception& error);

// The plan's numbers, and the three cheapest changes that would fit: what a run says that is out of memory, or, before
// its first step, one that will be by its plan.
std::string memory_text(const PlanReport& plan);
// Rank 0 warns where the plan is more than a rank may count on.
void warn_of_too_large_a_plan(const World& world, const PlanReport& plan);

inline constexpr ExitStatus kOutOfMemory{47};  // beside those of core/error.h

// `work`, which returns the exit status; where it is out of memory, the error says so with the plan, and the exit
// status is kOutOfMemory. `plan` (may be empty) is called then alone, and on the rank that it happened to.
int with_memory_advice(const std::function<PlanReport()>& plan, const std::function<int()>& work);

}  // namespace tessera
