// What a job provides to the training loop: a model, its data, and its metrics.
//
// The loop (trainer.h) calls begin_update, then load and loss_sum for each pass of the update; evaluate between
// updates. All ranks make the same calls; each has its own part of the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/log_record.h"
#include "tessera/unit.h"
#include "train/step_plan.h"

namespace tessera {

class TrainTask {
 public:
  virtual ~TrainTask() = default;
  virtual UnitModel& model() = 0;

  virtual std::int64_t num_rows() const = 0;  // of training, over all ranks
  // Micro-batches per epoch and rank, after all ranks together have taken so many rows of it.
  virtual std::int64_t num_batches_after(std::int64_t num_taken) const = 0;
  std::int64_t num_batches() const { return num_batches_after(0); }
  virtual std::int64_t num_eval_rows() const = 0;  // over all ranks; 0: nothing to evaluate on

  struct UpdateShape {
    std::int64_t num_passes = 0;   // per rank; fewer than micro-batches if they are merged
    std::int64_t num_counted = 0;  // targets over all ranks and passes: the loss is their mean
  };
  // Any update of the plan; cheapest in order.
  virtual UpdateShape begin_update(const Update& update) = 0;
  // Gets the next pass's data onto the device. Waits for it.
  virtual void load() = 0;
  // That pass: the loss summed over this rank's counted targets, with gradient. `seed` is the pass's dropout seed;
  // `gradient_scale` is the factor that backward will apply.
  virtual at::Tensor loss_sum(UnitRunner& runner, std::uint64_t seed, double gradient_scale) = 0;

  // What an evaluation sums over the ranks.
  struct Totals {
    std::vector<double> sums;      // in the task's own order
    std::int64_t num_batches = 0;  // on each rank
  };
  // Evaluates this rank's part, without gradients, in evaluation mode. Every rank makes the same number of passes
  // through the runner. Calls after_batch(done, total).
  virtual Totals evaluate(UnitRunner& runner, const std::function<void(std::int64_t, std::int64_t)>& after_batch) = 0;
  // From the sums over all ranks: {'eval_loss': ...}.
  virtual LogRecord metrics(const std::vector<double>& sums) const = 0;
};

}  // namespace tessera
