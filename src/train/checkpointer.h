// Who writes a run's checkpoints, as the training loop sees it. state/checkpoint_keeper.h implements it.
//
// The loop calls save() between updates when its flow says so, poll() after every step, and finish() at the end. A
// checkpoint may be written in the background meanwhile: it is complete when no rank is writing any more, which the
// ranks learn from a number that rides on the vote about stopping (stop_signals.h), at no cost of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "parallel/train_step.h"
#include "train/listener.h"
#include "train/run_state.h"

namespace tessera {

// What a checkpoint is made of. All of it outlives the checkpointer's use of it: until finish() returns.
struct TrainingView {
  RunMoment moment;
  TrainStep& step;
  RunProgress& progress;  // the checkpointer enters its checkpoints here
  const RunShape& shape;
};

// Collective, but for is_writing() and the two numbers.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;

  // Writes what a resume from this point needs; training may go on when it returns. Throws if that fails, unless the
  // settings say that a run goes on without.
  virtual void save(const TrainingView& view) = 0;
  // Whether this rank still writes what save() began.
  virtual bool is_writing() const = 0;
  // After each step: whether any rank was writing at the step before.
  virtual void poll(bool any_rank_was_writing) = 0;
  // Waits for what save() began.
  virtual void finish() = 0;

  virtual std::optional<std::int64_t> saved_step() const = 0;  // of the last checkpoint that has not failed
  virtual std::int64_t num_failures() const = 0;
};

}  // namespace tessera
