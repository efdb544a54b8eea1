// When a run logs, evaluates and saves: after each update, and once more after each epoch.
//
// Call after_step() for every update in turn and do what it says, in the order log, evaluate, save; when an epoch ends,
// or the run stops within one, after_epoch() likewise. Rules and names are Hugging Face's; a number of steps below 1 is
// a part of the whole run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera {

enum class Interval { kNo, kSteps, kEpoch, kBest };  // kBest: saving only, whenever the metric is the best yet

// 'no', 'steps', 'epoch' (and 'best' where allowed). Throws UsageError naming the setting.
Interval parse_interval(const std::string& setting, const std::string& text, bool best_is_allowed = false);

struct FlowOptions {
  Interval logging = Interval::kSteps;
  double logging_steps = 500;
  bool logging_first_step = false;
  Interval evaluation = Interval::kNo;
  std::optional<double> eval_steps = std::nullopt;  // logging_steps where there is none
  double eval_delay = 0;                            // no evaluation before that many steps (or epochs)
  Interval saving = Interval::kSteps;
  double save_steps = 500;
};

struct Actions {
  bool log = false;
  bool evaluate = false;
  bool save = false;
};

class Flow {
 public:
  // `first_step`: the updates that a resumed run has behind it. Throws UsageError for intervals that are none.
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
