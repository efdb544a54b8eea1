// When a run logs, evaluates and saves, in Hugging Face's terms. train/flow.h turns it into a run's actions. (no torch)
#pragma once

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
  bool logging_first_step = false;
  Interval evaluation = Interval::kNo;
  std::optional<double> eval_steps = std::nullopt;  // none: logging_steps
  double eval_delay = 0;                            // no evaluation before this many steps (or epochs)
  Interval saving = Interval::kSteps;
  double save_steps = 500;
};

}  // namespace tessera
