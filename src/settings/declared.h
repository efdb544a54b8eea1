// The settings of `tessera train JOB`, each declared once: those of all jobs, what a job adds, and the arguments of
// Hugging Face that are no settings here. (no torch)
//
// Whatever can be bound directly to a member of TrainSettings is. The rest stays here until resolve() (load.h) reads
// it: values that have two names in another program, words with a special meaning, and the files to read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "settings/foreign_config.h"
#include "settings/train_settings.h"

namespace tessera {

struct Resolution;

struct DeclaredSettings {
  TrainSettings train;

  // Other programs' files and words.
  ForeignFiles files;
  std::string env_file;
  std::string gpu_memory;  // a size, or auto
  std::string wrap_classes, lr_scheduler_kwargs, report_to, resume, profile_steps;
  bool fp16 = false, bf16 = false, tf32 = false, no_shuffle = false, do_eval = false, disable_tqdm = false;
  bool greater_is_better = false;
  double loss_scale = 0, eval_steps = 0, warmup_steps = 0;
  int initial_scale_power = 16;
  std::int64_t train_batch_size = 0, samples_per_rank = 0, subset_seed = -1, data_seed = -1;
  double layers_per_rank = 0;
  std::int64_t chosen_data_seed() const { return data_seed < 0 ? train.loop.seed : data_seed; }
  // Of sft and lm.
  bool packs = false, packs_evaluation = false;
  enum class PackingWord { kBestFit, kSplit, kWrapped } packing = PackingWord::kBestFit;
};

// Presets that differ between jobs, as a user would write them.
struct JobPresets {
  std::string batch_size;
  std::optional<std::string> eval_batch_size{};  // none: as in training
  std::string accumulation = "1", learning_rate, weight_decay, max_grad_norm;
  std::string optim, momentum = "0", scheduler = "linear";
  std::string save_strategy, logging_steps = "500", output_dir;
  std::string num_workers = "0";
};

// An argument of Hugging Face's programs that is not a setting of Tessera, and what happens to it. Users bring command
// lines with dozens of them. One that changes nothing here is accepted, and a note says why. One that asks for
// a missing feature is refused with advice, unless it turns the feature off (`--push_to_hub False`).
struct ForeignArgument {
  enum class Form { kBool, kNumber, kText };
  const char* name;
  Form form;
  const char* reason;  // why it changes nothing, or what to do instead
  // Of one that is refused: values that are accepted all the same, separated by |. nullptr: accepted without effect.
  const char* neutral = nullptr;
  bool is_secret = false;
  bool is_refused() const { return neutral != nullptr; }
};

// What a job adds to the settings: names, presets, settings of its own. jobs/ has one of these per job.
struct JobTraits {
  std::string name;     // `tessera train NAME`
  std::string summary;  // one line of help
  std::string example;  // what may follow `tessera train NAME`
  JobPresets presets;
  bool is_amp = false;               // PrecisionSettings::is_amp; float16 on a GPU unless the user chose a type
  bool decays_all = false;           // OptimizerSettings::decays_all
  bool has_buffers = false;          // batch norm's statistics, which stay float32
  bool deals_rows = false;           // ranks take rows in turn, as torch's DistributedSampler does; else batches
  std::vector<std::string> metrics;  // of --metric_for_best_model
  // Besides foreign_arguments() and other_words(): those of the programs whose users have this job.
  std::vector<ForeignArgument> foreign{};

  // Each of the functions below may be left out.
  using Declare = std::function<void(Schema&, DeclaredSettings&)>;
  static void declare_nothing(Schema&, DeclaredSettings&) {}
  // Settings of its own, in those groups, which are open.
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

// Declares all settings, including the job's own, with the job's presets. `s` must outlive the schema.
void declare(Schema& schema, const JobTraits& job, DeclaredSettings& s);

const std::vector<ForeignArgument>& foreign_arguments();  // of TrainingArguments: every job knows them
// The same for words of other trainers.
const std::vector<ForeignArgument>& other_words();
// Of trl's sft script, of run_clm, and of trl's dpo script, which is refused.
std::vector<ForeignArgument> sft_arguments();
std::vector<ForeignArgument> lm_arguments();

// Adds them, but for those that a job has as its own, to the schema, hidden from the help.
void declare_foreign(Schema& schema, const JobTraits& job);

// Call after all sources are read. Throws UsageError for a refused argument; one note lists the accepted ones.
void check_foreign(const Schema& schema, const JobTraits& job, std::vector<std::string>& notes);

}  // namespace tessera
