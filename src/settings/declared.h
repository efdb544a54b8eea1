// The settings of `tessera train JOB`, each declared once.
//
// What can be bound to a member of TrainSettings is; words that stand for an enumeration, values that come in two
// names of another program and the files to read are kept here until translate() (translate.h) has read them.
#pragma once

#include <deque>
#include <string>

#include "config/schema.h"
#include "settings/train_settings.h"

namespace tessera {

struct DeclaredSettings {
  TrainSettings train;

  // Files and words of others.
  std::string deepspeed, fsdp, fsdp_config, env_file;
  // Words that become an enumeration, a number or a list.
  std::string strategy, backward_prefetch, wrap, wrap_classes;
  std::string reduce_dtype, buffer_dtype, optim, lr_scheduler_kwargs, warmup_type, short_group;
  std::string eval_strategy, save_strategy, logging_strategy, merge_accumulation, report_to, resume, positions;
  bool fp16 = false, bf16 = false, tf32 = false, no_shuffle = false, do_eval = false, disable_tqdm = false;
  bool greater_is_better = false;
  double loss_scale = 0, eval_steps = 0;
  int initial_scale_power = 16;
  std::int64_t train_batch_size = 0, samples_per_rank = 0, subset_seed = -1, data_seed = -1;
  double layers_per_rank = 0;

  // Values of names that have no effect here or are refused (hugging_face.h).
  std::deque<bool> foreign_flags;
  std::deque<double> foreign_numbers;
  std::deque<std::string> foreign_words;
};

// Everything, with the job's own defaults. `s` must outlive the schema.
void declare(Schema& schema, Job job, DeclaredSettings& s);

namespace internal {

// What differs between jobs, in the form that a user would write.
struct JobPresets {
  const char *batch_size, *eval_batch_size, *accumulation, *learning_rate, *weight_decay, *max_grad_norm;
  const char *optim, *momentum, *scheduler;
  const char *save_strategy, *logging_steps, *output_dir;
};
const JobPresets& presets_of(Job job);

void declare_files(Schema& schema, DeclaredSettings& s);
void declare_model(Schema& schema, Job job, DeclaredSettings& s);
void declare_data(Schema& schema, Job job, DeclaredSettings& s);
void declare_spread(Schema& schema, DeclaredSettings& s);
void declare_precision(Schema& schema, DeclaredSettings& s);
void declare_optimizer(Schema& schema, Job job, DeclaredSettings& s);
void declare_schedule(Schema& schema, Job job, DeclaredSettings& s);
void declare_loop(Schema& schema, Job job, DeclaredSettings& s);
void declare_evaluation(Schema& schema, Job job, DeclaredSettings& s);
void declare_output(Schema& schema, Job job, DeclaredSettings& s);
void declare_reports(Schema& schema, DeclaredSettings& s);

}  // namespace internal
}  // namespace tessera
