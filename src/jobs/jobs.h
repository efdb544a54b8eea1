// The jobs of `tessera train`: each is one file pair of this folder and one line of the table in jobs.cc.
//
// A job has traits, which declare its settings (settings/job_traits.h), and can be opened: it then reads the files that
// the settings name and provides the parts of a run (run_job.h).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan_report.h"
#include "report/console.h"
#include "settings/load.h"
#include "state/model_output.h"
#include "tessera/world.h"
#include "train/task.h"
#include "train/trainer.h"

namespace tessera {

// A job with its model and data, on one rank. Every rank reads the same files and gets the same result or refusal.
class OpenJob {
 public:
  virtual ~OpenJob() = default;

  // The run's settings, with all open choices decided.
  virtual const TrainSettings& settings() const = 0;
  virtual TrainTask& task() = 0;
  virtual const SavedModel& saved_model() const = 0;
  virtual ParameterSource first_values() const { return {}; }  // empty: the model's own
  virtual PlanReport memory_plan() const = 0;                  // of the run's largest pass
  // Seconds of an update, tried out (speed_trial.h). It may change the model: the job must not be run then. Collective.
  virtual double predicted_update_seconds() = 0;
  virtual void announce(const StepPlan& plan) const = 0;  // rank 0 logs what is trained on what

  // What a job adds to a run, on every rank: before the first update, after a checkpoint is loaded; and after the model
  // is saved.
  virtual void before_training(Trainer&, Console&, Listeners&) {}
  virtual void after_saving(Trainer&, Console&, Listeners&) {}
};

struct Job {
  const JobTraits& traits;
  // `checkpoint`: the one to resume, if any. Throws UsageError. Collective.
  std::unique_ptr<OpenJob> (*open)(World& world, const LoadedTrainSettings& run,
                                   const std::optional<std::filesystem::path>& checkpoint);
};

const std::vector<Job>& jobs();
const Job& job_of(std::string_view name);  // one of them
std::vector<const JobTraits*> job_traits();

}  // namespace tessera
