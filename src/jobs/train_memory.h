// Want of memory: foreseen by the plan, or met; what is said then.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "report/plan_report.h"
#include "core/error.h"
#include "tessera/world.h"

namespace tessera {

// Says in which phase of the run it was.
class MemoryError : public Error {
 public:
  using Error::Error;
};

// Whether an error is a want of memory: torch's allocators' (GPU, pinned, CPU) or std::bad_alloc, whatever context has
// been put around it.
bool is_out_of_memory(const std::exception& error);

// The plan's numbers, and the three cheapest changes that would fit: what a run says that is out of memory, or, before
// its first step, one that will be by its plan.
std::string memory_text(const PlanReport& plan);
// Rank 0 warns where the plan is more than a rank may count on.
void warn_of_too_large_a_plan(const World& world, const PlanReport& plan);

// `work`, which returns the exit status; where it is out of memory, the error says so with the plan, and its status is
// kOutOfMemory. `plan` is called then alone, and on the rank that it happened to.
int with_memory_advice(const std::function<PlanReport()>& plan, const std::function<int()>& work);

}  // namespace tessera
