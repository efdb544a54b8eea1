#include "jobs/speed_trial.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "comm/exchange.h"
#include "core/host.h"
#include "train/listener.h"
#include "train/step_plan.h"
#include "train/trainer.h"

namespace tessera {
namespace {

// Enough that what bounds the whole model, the device or the host, bounds these too, and that their difference is large
// beside the noise of an update.
constexpr std::int64_t kFewBlocks = 8, kSomeBlocks = 16;

// Quick updates are many, because they are noisy and because rows differ in length.
TrialLength length_for(double update_seconds) {
  constexpr double kSeconds = 1;
  constexpr std::int64_t kMost = 64;
  TrialLength length;
  const auto wanted = static_cast<std::int64_t>(std::min<double>(kMost, kSeconds / update_seconds));
  length.counted = std::max(length.counted, wanted);
  return length;
}

// An update's end is told after its norm was read, so after the device has computed it.
class UpdateTimes : public TrainListener {
 public:
  UpdateTimes(std::int64_t uncounted, double* begin, double* end) : uncounted_(uncounted), begin_(begin), end_(end) {}
  std::string name() const override { return "the trial of speed"; }
  void on_step_end(const RunMoment& at) override {
    if (at.step == uncounted_) *begin_ = steady_seconds();
    *end_ = steady_seconds();
  }

 private:
  std::int64_t uncounted_;
  double *begin_, *end_;
};

}  // namespace

double tried_seconds(World& world, TrainTask& task, TrainSettings settings, const ParameterSource& first_values,
                     const TrialLength& length) {
  settings.loop.max_steps = length.uncounted + length.counted;
  settings.schedule = {.kind = "constant"};
  settings.optimizer.learning_rate = 1e-9;  // nothing diverges
  settings.flow.logging = settings.flow.evaluation = settings.flow.saving = Interval::kNo;
  settings.evaluation = {};
  settings.reports = {};
  settings.precision.loss_scale = {.rule = LossScaleOptions::Rule::kFixed, .initial = 1};  // no update is skipped
  double begin = 0, end = 0;
  Listeners listeners;
  listeners.add(std::make_unique<UpdateTimes>(length.uncounted, &begin, &end));
  Trainer(world, task, settings, plan_steps(task, settings, world.size()), first_values, listeners).run();
  double longest = 0;
  for (const std::vector<double>& of_rank : gather_numbers(world, {end - begin})) {
    longest = std::max(longest, of_rank.front());
  }
  return longest / static_cast<double>(length.counted);
}

double extrapolated_seconds(const BlockCounts& whole, const BlockTrial& tried) {
  const BlockCounts few{std::min(whole.on_device, kFewBlocks), std::min(whole.on_host, kFewBlocks)};
  const TrialLength length = length_for(tried(few, {}));
  const double base = tried(few, length);
  double seconds = base;
  for (std::int64_t BlockCounts::*kind : {&BlockCounts::on_device, &BlockCounts::on_host}) {
    const std::int64_t num_more = whole.*kind - few.*kind;
    if (num_more == 0) continue;
    BlockCounts some = few;
    some.*kind = std::min(whole.*kind, kSomeBlocks);
    const double of_block = (tried(some, length) - base) / static_cast<double>(some.*kind - few.*kind);
    seconds += std::max(0.0, of_block) * static_cast<double>(num_more);
  }
  return seconds;
}

}  // namespace tessera
