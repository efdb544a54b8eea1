// Which changes would make a run fit into memory: `tessera plan --memory` and a run that is out of memory print them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/memory_plan.h"

namespace tessera {

// With offload: the largest units_on_device with which the device's peak is at most `limit_bytes`; none: not even 0.
std::optional<std::int64_t> most_units_on_device(const PlannedModel& model, const PlanRequest& request,
                                                 std::int64_t limit_bytes);

struct MemoryAdvice {
  std::string change;  // in the words of the settings: "--gradient_checkpointing"
  PlanRequest request;
  MemoryPlan plan;
};

// The changes after which the device's peak is at most `limit_bytes`: first those of one setting, then those of two,
// and so on, each sorted by their cost in speed. At most `at_most`; empty if none is enough.
std::vector<MemoryAdvice> advise(const PlannedModel& model, const PlanRequest& request, std::int64_t limit_bytes,
                                 std::size_t at_most = 3);

}  // namespace tessera
