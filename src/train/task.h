// What a job brings to the training loop: a model, its data, and what is measured of it.
//
// The loop (trainer.h) asks in this order: begin_update, then loss_sum for each of its passes; evaluate between
// updates. All ranks make the same calls; each has its own part of the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/log_record.h"
#include "model/unit.h"
#include "train/step_plan.h"

namespace tessera {

class TrainTask {
 public:
  virtual ~TrainTask() = default;
  virtual UnitModel& model() = 0;

  virtual std::int64_t num_rows() const = 0;       // of training, over all ranks
  virtual std::int64_t num_batches() const = 0;    // micro-batches of an epoch, on each rank
  virtual std::int64_t num_eval_rows() const = 0;  // over all ranks; 0: there is nothing to evaluate on

  struct UpdateShape {
    std::int64_t num_passes = 0;   // of each rank; fewer than micro-batches where they are merged
    std::int64_t num_counted = 0;  // targets over all ranks and passes: what the loss is the mean of
  };
  // Any update of the plan; one after another costs least.
  virtual UpdateShape begin_update(const Update& update) = 0;
  // Of the next pass: the loss added up over this rank's counted targets, with gradient. `seed` is the pass's own, for
  // dropout; `gradient_scale` what backward will multiply with.
  virtual at::Tensor loss_sum(UnitRunner& runner, std::uint64_t seed, double gradient_scale) = 0;

  // What an evaluation adds up over the ranks.
  struct Totals {
    std::vector<double> sums;      // in an order of the task's own
    std::int64_t num_batches = 0;  // on each rank
  };
  // This rank's part, without gradients, in evaluation mode. Every rank makes the same number of passes through the
  // runner. `after_batch` hears (done, total).
  virtual Totals evaluate(UnitRunner& runner, const std::function<void(std::int64_t, std::int64_t)>& after_batch) = 0;
  // From the sums over all ranks: {'eval_loss': ...}.
  virtual LogRecord metrics(const std::vector<double>& sums) const = 0;
};

}  // namespace tessera
