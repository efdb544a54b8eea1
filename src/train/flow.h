// When a run logs, evaluates and saves: after each update, and once more after each epoch.
//
// After every update call after_step() and do what it says, in the order log, evaluate, save. When an epoch ends, or
// the run stops within one, call after_epoch() in the same way. Rules and names are Hugging Face's.
#pragma once

#include <cstdint>

#include "settings/run_schedule.h"

namespace tessera {

struct Actions {
  bool log = false;
  bool evaluate = false;
  bool save = false;
};

class Flow {
 public:
  // `first_step`: the updates that a resumed run has already done. Throws UsageError for invalid intervals.
  Flow(const FlowOptions& options, std::int64_t total_steps, std::int64_t first_step = 0);

  Actions after_step(std::int64_t step);
  Actions after_epoch(std::int64_t step, double epoch);

 private:
  bool log_once(bool due, std::int64_t step);

  FlowOptions options_;
  std::int64_t total_steps_;
  std::int64_t logging_steps_, eval_steps_, save_steps_;
  std::int64_t last_logged_;  // no update is logged twice
};

}  // namespace tessera
