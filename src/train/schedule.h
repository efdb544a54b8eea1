// Learning rates: what each update uses, as transformers, DeepSpeed and torch compute them.
//
// A schedule is a function of the number of times it was advanced: once per update that the fp16 scaler did not skip
// (StepLR: once per epoch). at(n) is the rate of update n + 1, and the rate that a log line shows after update n.
#pragma once

#include <cstdint>
#include <functional>

#include "settings/run_schedule.h"

namespace tessera {

// The warm-up that the settings mean: transformers' get_warmup_steps.
std::int64_t warmup_steps_of(const ScheduleOptions& options);

class Schedule {
 public:
  // Throws UsageError for an unknown kind (listing the known ones) and for values that the kind does not allow, such as
  // more warm-up than updates.
  explicit Schedule(const ScheduleOptions& options);

  double at(std::int64_t num_advanced) const { return rate_(num_advanced); }

 private:
  std::function<double(std::int64_t)> rate_;
};

}  // namespace tessera
