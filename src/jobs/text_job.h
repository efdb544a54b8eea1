// A job that trains a text model on rows of tokens: what those of all kinds of rows share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/loading/text_rows.h"
#include "jobs/jobs.h"
#include "jobs/text_model.h"
#include "jobs/text_task.h"

namespace tessera {

class TextJob : public OpenJob {
 public:
  // As decided by settle().
  TextJob(World& world, TrainSettings settings, OpenedModel model, TextRows training,
          std::optional<TextRows> evaluation);

  TrainTask& task() override { return task_; }
  ParameterSource first_values() const override;
  PlanReport memory_plan() const override;
  double predicted_update_seconds() override;
  void announce(const StepPlan& plan) const override;

 protected:
  const OpenedModel& text_model() const { return model_; }

 private:
  OpenedModel model_;
  TextRows training_;
  std::optional<TextRows> evaluation_;
  TextTask task_;
};

// Decides what a plan of the run's memory tells: whether micro-steps are merged, and what stays on the GPU. Rank 0 logs
// it. Collective.
void settle(TrainSettings& settings, const OpenedModel& model, const TextRows& training, World& world);

}  // namespace tessera
