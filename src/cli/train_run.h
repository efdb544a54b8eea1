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

// trainer.run(), then `finish` (the best model, its folder, its answers) unless a signal has stopped the run. Tells the
// listeners how it ended. Returns the exit status: 0, or 128 + signal. Collective.
// Throws OutputError at the end of a run whose lines could not be printed.
int run_to_end(World& world, const TrainRun& run, Trainer& trainer, Console& console, Listeners& listeners,
               const std::function<void()>& finish);

// Whether an error is a want of memory: torch's allocators' (GPU, pinned, CPU) or std::bad_alloc, whatever context has
// been put around it.
bool is_out_of_memory(const std::exception& error);

// What a run that is out of memory says: where, the plan's numbers, and the cheapest changes that would fit.
std::string out_of_memory_text(const std::string& what, const PlanReport& plan);

inline constexpr ExitStatus kOutOfMemory{47};  // beside those of core/error.h

// `work`, which returns the exit status; where it is out of memory, the error says so with the plan, and the exit
// status is kOutOfMemory. `plan` (may be empty) is called then alone, and on the rank that it happened to.
int with_memory_advice(const std::function<PlanReport()>& plan, const std::function<int()>& work);

}  // namespace tessera
