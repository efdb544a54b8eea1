// The settings of `tessera train JOB`, each declared once. (no torch)
//
// Whatever can be bound directly to a member of TrainSettings is. The rest stays here until resolve() (resolve.h) reads
// it: values that have two names in another program, words with a special meaning, and the files to read.
#pragma once

#include <deque>
#include <string>

#include "config/schema.h"
#include "settings/foreign_files.h"
#include "settings/job_traits.h"
#include "settings/train_settings.h"

namespace tessera {

struct DeclaredSettings {
  TrainSettings train;

  // Other programs' files and words.
  ForeignFiles files;
  std::string env_file;
  std::string gpu_memory;  // a size, or auto
  std::string wrap_classes, lr_scheduler_kwargs, report_to, resume, profile_steps;
  bool fp16 = false, bf16 = false, tf32 = false, no_shuffle = false, do_eval = false, disable_tqdm = false;
  bool greater_is_better = false;
  double loss_scale = 0, eval_steps = 0;
  int initial_scale_power = 16;
  std::int64_t train_batch_size = 0, samples_per_rank = 0, subset_seed = -1, data_seed = -1;
  double layers_per_rank = 0;

  // Values of names that are refused or have no effect here (hugging_face.h).
  std::deque<bool> foreign_flags;
  std::deque<double> foreign_numbers;
  std::deque<std::string> foreign_words;
};

// Declares all settings, including the job's own, with the job's presets. `s` must outlive the schema.
void declare(Schema& schema, const JobTraits& job, DeclaredSettings& s);

namespace internal {

void declare_loop(Schema& schema, const JobTraits& job, DeclaredSettings& s);
void declare_precision(Schema& schema, DeclaredSettings& s);
void declare_optimizer(Schema& schema, const JobTraits& job, DeclaredSettings& s);
void declare_schedule(Schema& schema, const JobTraits& job, DeclaredSettings& s);
void declare_evaluation(Schema& schema, const JobTraits& job, DeclaredSettings& s);
void declare_output(Schema& schema, const JobTraits& job, DeclaredSettings& s);
void declare_reports(Schema& schema, DeclaredSettings& s);

}  // namespace internal
}  // namespace tessera
