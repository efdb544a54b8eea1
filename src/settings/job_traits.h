// What a job tells its settings: names, presets, settings of its own. jobs/ has one of these per job. (no torch)
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace tessera {

struct DeclaredSettings;
struct Resolution;
struct TrainSettings;

// What differs between jobs, in the form that a user would write.
struct JobPresets {
  std::string batch_size, eval_batch_size;  // the latter empty: that of training
  std::string accumulation = "1", learning_rate, weight_decay, max_grad_norm;
  std::string optim, momentum = "0", scheduler = "linear";
  std::string save_strategy, logging_steps = "500", output_dir;
  std::string drop_last = "false";
};

struct JobTraits {
  std::string name;     // `tessera train NAME`
  std::string summary;  // one line of help
  JobPresets presets;
  bool is_amp = false;               // PrecisionSettings::is_amp; float16 on a GPU unless somebody chose
  bool decays_all = false;           // OptimizerSettings::decays_all
  bool has_buffers = false;          // batch norm's statistics, which stay float32
  std::vector<std::string> metrics;  // of --metric_for_best_model

  using Declare = std::function<void(Schema&, DeclaredSettings&)>;
  Declare declare_model, declare_data, declare_evaluation;  // settings of its own, in those groups
  // Whether the settings name data to evaluate on, as far as they can tell.
  std::function<bool(const TrainSettings&)> has_evaluation_data;
  // Follows from the job's own settings what they leave open; may be empty.
  std::function<void(Schema&, DeclaredSettings&, const Resolution&, std::vector<std::string>& notes)> resolve;
  // Refuses what makes no sense with this job, and what is missing where `needs_data`.
  std::function<void(const Schema&, const DeclaredSettings&, bool needs_data)> check;
};

}  // namespace tessera
