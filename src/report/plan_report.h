// What `tessera plan` found, as a table or as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "parallel/memory_advice.h"

namespace tessera {

struct PlannedModel {
  std::string name;
  std::vector<PlannedUnit> units;
  StepMaker make_step;
  std::int64_t buffer_bytes = 0;
  std::string counts = "token";  // what StepShape::num_tokens is a number of
};

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

}  // namespace tessera
