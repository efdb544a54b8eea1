// From the words of `tessera train JOB ...` to TrainSettings: the function that the command calls first.
//
//   LoadedTrainSettings loaded = load_train_settings({.jobs = ..., .arguments = args, .environment = ...,
//                                                     .num_ranks = ..., .declare_more = ...});
//   if (loaded.is_done) return 0;                       // help or --print_config was asked for and has been printed
//   for (const std::string& note : loaded.notes) log_info("{}", note);
//   ... loaded.settings ...         // loaded.schema->shown() for run.json, to_json() to compare ranks
//
// Precedence: command line, JSON files, process environment, env file, defaults. Uses no torch, no threads and only
// files that are named; every rank gets the same result or refusal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "core/environment.h"
#include "settings/job_traits.h"
#include "settings/train_settings.h"

namespace tessera {

struct TrainRequest {
  std::vector<const JobTraits*> jobs;  // all jobs
  std::vector<std::string> arguments;  // what follows `tessera train`: the job first
  Environment environment;
  std::optional<int> num_ranks;                 // if known before the ranks meet
  std::function<void(Schema&)> declare_more{};  // settings of other layers: backend, device, ...
  std::string commit{};                         // of the program, for the run's record
  bool needs_data = true;                       // false: settings are only looked at; files of data may be missing
};

struct DeclaredSettings;

struct LoadedTrainSettings {
  LoadedTrainSettings();
  LoadedTrainSettings(LoadedTrainSettings&&) noexcept;
  LoadedTrainSettings& operator=(LoadedTrainSettings&&) noexcept;
  ~LoadedTrainSettings();

  bool is_done = false;
  TrainRequest request;
  TrainSettings settings;
  std::vector<std::string> notes;              // one line each, for rank 0 to log
  std::unique_ptr<DeclaredSettings> declared;  // what the schema is bound to
  std::unique_ptr<Schema> schema;
};

// Throws UsageError, which names the setting, the value, where it came from and what is allowed.
LoadedTrainSettings load_train_settings(const TrainRequest& request);

// For the trainer, once it knows the number of steps: warm-up and a ds_config's total must fit. Throws UsageError.
void check_total_steps(const TrainSettings& settings, std::int64_t num_steps);

}  // namespace tessera
