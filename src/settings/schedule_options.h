// Which learning-rate schedule a run has. train/schedule.h computes it. (no torch)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

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
