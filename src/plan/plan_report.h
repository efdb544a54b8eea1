// A memory plan in words: the table and the JSON of `tessera plan`, and the message of a run that is out of memory.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "plan/memory_plan.h"

namespace tessera {

struct PlanRow {
  std::string strategy;
  PlanRequest request;
  MemoryPlan plan;
};

struct PlanReport {
  PlannedModel model;
  PlanRequest request;  // without a strategy
  std::string optimizer;
  std::optional<std::int64_t> limit_bytes;
  std::vector<PlanRow> rows;
  std::vector<std::string> left_out;  // strategies that these settings do not allow
  // If no row fits: what would make the row that needs least fit.
  std::string advice_for;
  std::vector<MemoryAdvice> advice;
};

void add_advice(PlanReport& report);
std::string plan_text(const PlanReport& report);
Json plan_json(const PlanReport& report);

// Out of memory, predicted by the plan or hit at run time.

// Says in which phase of the run memory ran out.
class MemoryError : public Error {
 public:
  using Error::Error;
};

// Whether an error says that memory ran out: torch's allocators' (GPU, pinned, CPU) or std::bad_alloc, in any context.
bool is_out_of_memory(const std::exception& error);

// The memory that the plan's rank can use: its limit, or that of the process (ulimit -v) if it is lower.
std::optional<std::int64_t> usable_bytes(const PlanReport& plan);
// The first row's numbers and the three cheapest changes that would fit: the message of a run that is out of memory or,
// before its first step, of one whose plan does not fit.
std::string memory_text(const PlanReport& plan);

// What ran out of memory, in which phase.
std::string message_without_memory(const std::exception& error);
// That message with the plan, and the status kOutOfMemory. `plan` is called on the rank that ran out of memory.
Error out_of_memory_error(const std::string& what, const std::function<PlanReport()>& plan);

}  // namespace tessera
