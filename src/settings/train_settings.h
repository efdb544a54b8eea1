// Everything that `tessera train` was told, as plain values: what the trainer reads.
//
// Made by load_train_settings() (load.h), which has checked it: combinations that make no sense do not get here. Where
// a value depends on the number of ranks, that is in it already.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/loss_scale.h"
#include "train/flow.h"
#include "train/schedule.h"
#include "train/step_plan.h"

namespace tessera {

enum class Job { kBloomQa, kGptQa, kResnetTinyimagenet };
enum class NumberType { kFloat32, kFloat16, kBfloat16 };
enum class OptimizerKind { kAdamW, kAdam, kSgd };           // kAdam: the decay is added to the gradient
OptimizerKind optimizer_kind_of(const std::string& optim);  // adamw_torch, adamw_hf, ...: one
enum class UnitWrap { kBlocks, kByClass, kBySize, kNone };
enum class PrefetchInBackward { kNone, kBefore, kAfter };  // the next unit's gather, before or after this one's work
enum class MergeAccumulation { kAuto, kOn, kOff };

struct ModelSettings {
  std::string name_or_path;    // a folder, or a hub name that the local cache holds; empty: from scratch
  std::string config_name;     // config.json of a model from scratch
  std::string tokenizer_name;  // empty: the model folder's own
  // gpt-qa alone.
  std::int64_t vocab_size = 0, hidden_size = 0, num_layers = 0, num_heads = 0, ff_dim = 0, seq_length = 0;
  double dropout = 0;
  bool learned_positions = false;
};

struct DataSettings {
  std::string train_file, validation_file;  // text jobs; the latter empty: no evaluation
  std::string data_dir;                     // resnet-tinyimagenet
  std::int64_t image_size = 0;              // pixels of a side that it sees
  std::int64_t max_train_samples = 0;       // over all ranks; 0: all
  std::int64_t max_eval_samples = 0;
  std::optional<std::int64_t> subset_seed;  // rows as `datasets`' shuffle(seed).select(range(N)); none: the first N
  std::int64_t max_length = 0;
  std::string label_mode;  // a name that label_mode_of() takes
  bool shuffle = true;
  bool drop_last = false;
  int num_workers = 0;
  int prefetch_factor = 0;  // batches ahead for each worker
};

struct SpreadSettings {
  std::string strategy;  // a name that placement_of() takes
  bool offload_optimizer = false, offload_param = false, pin_memory = false, delayed_update = false;
  bool forward_prefetch = true;
  PrefetchInBackward backward_prefetch = PrefetchInBackward::kBefore;
  bool sync_module_states = true;
  UnitWrap wrap = UnitWrap::kBlocks;
  std::vector<std::string> wrap_classes;  // kByClass: without the module path before the name
  std::int64_t wrap_min_num_params = 0;   // kBySize
  bool use_cpu = false;
};

struct PrecisionSettings {
  NumberType compute = NumberType::kFloat32;
  bool half_on_gpu = false;          // nobody chose: float16 where the device is a GPU (resnet's AMP)
  std::optional<NumberType> reduce;  // of gradients between ranks; none: the compute type
  std::optional<NumberType> buffers;
  std::optional<bool> tf32;  // none: libtorch's own choice
  LossScaleOptions loss_scale;
};

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double learning_rate = 0, weight_decay = 0;
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double momentum = 0;
  bool nesterov = false;
  double max_grad_norm = 0;  // 0: no clipping
};

struct LoopSettings {
  std::int64_t batch_size = 0, eval_batch_size = 0;  // of one rank and micro-step
  std::int64_t accumulation = 1;
  double num_epochs = 0;
  std::int64_t max_steps = 0;  // beats the epochs where it is not 0
  std::int64_t seed = 0, data_seed = 0;
  bool gradient_checkpointing = false;
  MergeAccumulation merge_accumulation = MergeAccumulation::kAuto;
  ShortGroup short_group = ShortGroup::kNotCounted;
  bool stop_on_nan = true;
  bool full_determinism = false;  // the same bits each time on a GPU, too
};

// When is in TrainSettings::flow.
struct EvaluationSettings {
  bool on_start = false, at_end = false;
  bool load_best_model_at_end = false;
  std::string metric_for_best_model;  // "loss", "exact_match", "f1" or "accuracy"; empty: none is the best
  bool greater_is_better = false;
  int early_stopping_patience = 0;  // evaluations without a better one; 0: never stops early
  double early_stopping_threshold = 0;
  bool generates = true;  // text jobs: exact match and F1 at the end, by greedy generation
  std::int64_t max_new_tokens = 50;
  bool local_metrics = false;  // resnet: rank 0's own
};

struct OutputSettings {
  std::string output_dir, logging_dir, log_dir;
  int save_total_limit = 0;  // 0: all are kept
  bool save_only_model = false;
  std::string resume_from_checkpoint;  // a folder; empty: none, or by the next
  bool resume_from_latest = false;     // the newest complete checkpoint of output_dir
  bool shows_progress = true;
};

struct ReportSettings {
  bool tensorboard = false, wandb = false;
  std::string run_name;
  std::string wandb_name, wandb_mode, wandb_dir, wandb_run_id, wandb_project;
};

struct TrainSettings {
  Job job = Job::kBloomQa;
  bool dry_run = false;
  ModelSettings model;
  DataSettings data;
  SpreadSettings spread;
  PrecisionSettings precision;
  OptimizerSettings optimizer;
  ScheduleOptions schedule;  // total_steps: what a ds_config says of them; 0: the run's own number
  LoopSettings loop;
  FlowOptions flow;
  EvaluationSettings evaluation;
  OutputSettings output;
  ReportSettings reports;
};

const std::vector<std::string>& job_names();  // in the order of the enumeration
const std::string& name_of(Job job);
std::optional<Job> job_of(const std::string& name);

}  // namespace tessera
