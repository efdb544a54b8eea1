// Learning rates: what each update uses, as transformers, DeepSpeed and torch compute them.
//
// A schedule is a function of the number of times that it was advanced: once for each update, but not for one that the
// fp16 scaler skipped (StepLR: once an epoch). at(n) is the rate of update n + 1, and after update n the rate that
// a log line shows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

enum class WarmupShape { kLog, kLinear };

struct ScheduleOptions {
  std::string kind = "linear";  // one of schedule_kinds()
  double learning_rate = 5e-5;
  std::int64_t total_steps = 0;
  std::int64_t warmup_steps = 0;  // above 0: beats the ratio
  double warmup_ratio = 0;        // of total_steps, rounded up

  // lr_scheduler_kwargs of transformers; where there is none, the kind's own value.
  std::optional<double> num_cycles = std::nullopt;  // cosine: 0.5 waves; cosine_with_restarts: 1 start
  std::optional<double> power = std::nullopt;       // polynomial: 1
  std::optional<double> lr_end = std::nullopt;      // polynomial: 1e-7
  std::optional<double> min_lr = std::nullopt;      // cosine_with_min_lr: this or min_lr_rate
  std::optional<double> min_lr_rate = std::nullopt;
  std::optional<double> timescale = std::nullopt;  // inverse_sqrt: the warm-up's steps, or 10,000

  // DeepSpeed's WarmupLR and WarmupDecayLR: from warmup_min_lr to learning_rate in warmup_steps, which are at least 2.
  double warmup_min_lr = 0;
  WarmupShape warmup_shape = WarmupShape::kLog;

  // torch's StepLR.
  std::int64_t step_size = 30;
  double gamma = 0.1;
};

const std::vector<std::string>& schedule_kinds();

// The warm-up that the settings mean: transformers' get_warmup_steps.
std::int64_t warmup_steps_of(const ScheduleOptions& options);

class Schedule {
 public:
  // Throws UsageError for an unknown kind (with the known ones) and for values that the kind does not allow, more
  // warm-up than updates among them.
  explicit Schedule(const ScheduleOptions& options);

  double at(std::int64_t num_advanced) const { return rate_(num_advanced); }

 private:
  std::function<double(std::int64_t)> rate_;
};

}  // namespace tessera
