// What a job adds to the settings: names, presets, settings of its own. jobs/ has one of these per job. (no torch)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace tessera {

struct DeclaredSettings;
struct Resolution;
struct TrainSettings;

// Presets that differ between jobs, as a user would write them.
struct JobPresets {
  std::string batch_size, eval_batch_size;  // eval_batch_size empty: as in training
  std::string accumulation = "1", learning_rate, weight_decay, max_grad_norm;
  std::string optim, momentum = "0", scheduler = "linear";
  std::string save_strategy, logging_steps = "500", output_dir;
  std::string num_workers = "0";
};

struct JobTraits {
  std::string name;     // `tessera train NAME`
  std::string summary;  // one line of help
  JobPresets presets;
  bool is_amp = false;               // PrecisionSettings::is_amp; float16 on a GPU unless the user chose a type
  bool decays_all = false;           // OptimizerSettings::decays_all
  bool has_buffers = false;          // batch norm's statistics, which stay float32
  bool deals_rows = false;           // ranks take rows in turn, as torch's DistributedSampler does; else batches
  std::vector<std::string> metrics;  // of --metric_for_best_model

  // Each of the functions below may be left out.
  using Declare = std::function<void(Schema&, DeclaredSettings&)>;
  static void declare_nothing(Schema&, DeclaredSettings&) {}
  // Settings of its own, in those groups.
  Declare declare_model = declare_nothing, declare_data = declare_nothing, declare_evaluation = declare_nothing;
  // Whether the settings name data to evaluate on, as far as they can tell, and which setting does, for messages.
  std::string evaluation_setting = {};
  std::function<bool(const TrainSettings&)> has_evaluation_data = [](const TrainSettings&) { return false; };
  // Derives open values from the job's own settings.
  std::function<void(Schema&, DeclaredSettings&, const Resolution&, std::vector<std::string>& notes)> resolve =
      [](Schema&, DeclaredSettings&, const Resolution&, std::vector<std::string>&) {};
  // How large the model is, as far as the settings alone tell; none: its files do.
  std::function<std::optional<std::int64_t>(const TrainSettings&)> num_parameters = [](const TrainSettings&) {
    return std::nullopt;
  };
  // Refuses what makes no sense for this job and, if `needs_data`, what is missing.
  std::function<void(const Schema&, const DeclaredSettings&, bool needs_data)> check =
      [](const Schema&, const DeclaredSettings&, bool) {};
};

}  // namespace tessera
