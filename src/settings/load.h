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
#include "settings/declared.h"
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

struct LoadedTrainSettings {
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

// How the words that were read become TrainSettings: used by load_train_settings() and by the jobs.

struct Resolution {
  std::optional<int> num_ranks;  // if known
  bool needs_data = true;        // false: only to show settings
  Environment environment{};     // tells where other programs keep their files
};

// Call after all sources are read. Derives open values from other settings (the schema records them with that origin)
// and fills s.train. Throws UsageError on the first contradiction.
void resolve(Schema& schema, const JobTraits& job, DeclaredSettings& s, const Resolution& how,
             std::vector<std::string>& notes);

// What train_batch_size leaves open: the schema's own values of per_device_train_batch_size and
// gradient_accumulation_steps where they fit, else its batch size with another accumulation, else an accumulation of 1,
// as DeepSpeed does. A note says what was chosen. Throws UsageError if the product is not `total`; 0: nothing is asked.
void resolve_batch(Schema& schema, std::int64_t total, const std::int64_t& batch_size, const std::int64_t& accumulation,
                   int num_ranks, std::vector<std::string>& notes);

// "--fp16=true (command line)", "fp16=true (ds.json: fp16.enabled)": how messages name a setting with its value.
std::string shown(const Schema& schema, const std::string& name);
// Records a derived value in the schema, so that --print_config shows it and where it comes from.
void follow(Schema& schema, const std::string& name, const Json& value, const std::string& from);
// `name` was given and replaces `other`: refuses both from one source, and notes that the higher source wins.
void overrule(const Schema& schema, const std::string& name, const std::string& other, std::vector<std::string>& notes);
// Throws UsageError "<what> is missing" if the value is empty.
void require(const std::string& value, const std::string& what);

namespace internal {

// The last part of resolve().
void check_combinations(const Schema& schema, const JobTraits& job, const DeclaredSettings& s, const Resolution& how,
                        std::vector<std::string>& notes);

}  // namespace internal
}  // namespace tessera
