// Out of memory: predicted by the plan or hit at run time, and the message about it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/error.h"
#include "report/plan_report.h"
#include "tessera/world.h"

namespace tessera {

// Says in which phase of the run memory ran out.
class MemoryError : public Error {
 public:
  using Error::Error;
};

// Whether an error says that memory ran out: torch's allocators' (GPU, pinned, CPU) or std::bad_alloc, in any context.
bool is_out_of_memory(const std::exception& error);

// The plan's numbers and the three cheapest changes that would fit: the message of a run that is out of memory or,
// before its first step, of one whose plan does not fit.
std::string memory_text(const PlanReport& plan);
// Rank 0 warns if the plan needs more than a rank can use. Throws Error with the status kOutOfMemory if this host's
// ranks need more of its memory than it has: the kernel would end one of them by SIGKILL, without a word about why.
void check_plan(const World& world, const PlanReport& plan);

// What ran out of memory, in which phase.
std::string message_without_memory(const std::exception& error);
// That message with the plan, and the status kOutOfMemory. `plan` is called on the rank that ran out of memory.
Error out_of_memory_error(const std::string& what, const std::function<PlanReport()>& plan);

}  // namespace tessera
