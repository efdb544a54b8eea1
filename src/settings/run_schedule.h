// When a run logs, evaluates and saves, in Hugging Face's terms, and how its learning rate goes. train/flow.h and
// train/schedule.h turn this into a run's actions. (no torch)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// Of saving alone: kBest, whenever the metric is the best yet; kOnStop, only where a signal stops the run.
enum class Interval { kNo, kSteps, kEpoch, kBest, kOnStop };
inline const std::vector<std::string> kIntervalNames = {"no", "steps", "epoch", "best", "on_stop"};

// A number of steps below 1 is a fraction of the whole run.
struct FlowOptions {
  Interval logging = Interval::kSteps;
  double logging_steps = 500;
  bool logs_short_runs = false;  // nobody chose logging_steps: with_short_runs_logged() may lower it
  bool logging_first_step = false;
  Interval evaluation = Interval::kNo;
  std::optional<double> eval_steps = std::nullopt;  // none: logging_steps
  double eval_delay = 0;                            // no evaluation before this many steps (or epochs)
  Interval saving = Interval::kSteps;
  double save_steps = 500;
};

enum class WarmupShape { kLog, kLinear };

struct ScheduleOptions {
  std::string kind = "linear";  // one of schedule_kinds()
  double learning_rate = 5e-5;
  std::int64_t total_steps = 0;
  std::int64_t warmup_steps = 0;  // above 0: overrides the ratio
  double warmup_ratio = 0;        // of total_steps, rounded up

  // lr_scheduler_kwargs of transformers; none: the kind's own value.
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

inline const std::vector<std::string>& schedule_kinds() {
  static const std::vector<std::string> kinds = {"linear",
                                                 "cosine",
                                                 "cosine_with_restarts",
                                                 "cosine_with_min_lr",
                                                 "polynomial",
                                                 "constant",
                                                 "constant_with_warmup",
                                                 "inverse_sqrt",
                                                 "WarmupLR",
                                                 "WarmupDecayLR",
                                                 "StepLR"};
  return kinds;
}

}  // namespace tessera
