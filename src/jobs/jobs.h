// The jobs of `tessera train`: each is one file of this folder and one line of the table in jobs.cc.
//
// A job has traits, which declare its settings (settings/declared.h), and can be opened: it then reads the files that
// the settings name and provides the parts of a run. run_job() runs any of them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/loading/prefetch_loader.h"
#include "listeners/console.h"
#include "listeners/run_recorder.h"
#include "listeners/run_reports.h"
#include "plan/plan_report.h"
#include "settings/load.h"
#include "state/model_output.h"
#include "tessera/world.h"
#include "train/task.h"
#include "train/trainer.h"

namespace tessera {

// A job with its model and data, on one rank. Every rank reads the same files and gets the same result or refusal.
class OpenJob {
 public:
  OpenJob(World& world, TrainSettings settings, SavedModel saved)
      : world_(world), settings_(std::move(settings)), saved_(std::move(saved)) {}
  virtual ~OpenJob() = default;

  // The run's settings, with all open choices decided.
  const TrainSettings& settings() const { return settings_; }
  virtual TrainTask& task() = 0;
  const SavedModel& saved_model() const { return saved_; }
  virtual ParameterSource first_values() const { return {}; }  // empty: the model's own
  virtual PlanReport memory_plan() const = 0;                  // of the run's largest pass
  // Seconds of an update, tried out (speed_trial.h). It may change the model: the job must not be run then. Collective.
  virtual double predicted_update_seconds() = 0;
  virtual void announce(const StepPlan& plan) const = 0;  // rank 0 logs what is trained on what

  // What a job adds to a run, on every rank: before the first update, after a checkpoint is loaded; and after the model
  // is saved.
  virtual void before_training(Trainer&, Console&, Listeners&) {}
  virtual void after_saving(Trainer&, Console&, Listeners&) {}

 protected:
  World& world_;
  TrainSettings settings_;

 private:
  SavedModel saved_;
};

struct Job {
  JobTraits traits;
  // `checkpoint`: the one to resume, if any. Throws UsageError. Collective.
  std::unique_ptr<OpenJob> (*open)(World& world, const LoadedTrainSettings& run,
                                   const std::optional<std::filesystem::path>& checkpoint);
};

const std::vector<Job>& jobs();
const Job& job_of(std::string_view name);  // one of them
std::vector<const JobTraits*> job_traits();

// What the table is made of.
Job qa();
Job bloom_qa();
Job gpt_qa();
Job sft();
Job lm();
Job resnet_tinyimagenet();

// `tessera train` on each rank: opens, trains and saves a job, with all its listeners. From the settings to the saved
// model. Returns the exit status: 0, or 128 + the signal that stopped the run. With
// --dry_run it does everything up to the first step except allocating the run's memory, and rank 0 prints the plan.
// `make_page`: of the run's page, which rank 0 writes at the end. Collective.
int run_job(World& world, const LoadedTrainSettings& run, const MakePage& make_page);

// What a run is, with every open choice decided: for run.json and for those who compare runs. `first_step`: updates
// done before this run resumed. Collective where the memory plan is.
RunFacts facts_of(const World& world, const LoadedTrainSettings& run, OpenJob& job, const StepPlan& steps,
                  std::int64_t first_step);

std::int64_t num_parameters(const torch::nn::Module& model);

// How a job's loaders run. -1 workers: as many as libtorch may use threads, since a GPU leaves them free, at most 16
// and no more than a gibibyte of batches, or two, keeps busy; none where the threads compute themselves. `batch_bytes`:
// of the largest batch.
PrefetchOptions loader_options(const DataSettings& data, at::Device device, std::int64_t batch_bytes);

}  // namespace tessera
