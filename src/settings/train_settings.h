// Everything that `tessera train` was told, as plain values: what the trainer reads.
//
// Made and checked by load_train_settings() (load.h): combinations that make no sense never get here. Values that
// depend on the number of ranks are already computed.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "kernels/optimizers/optimizer.h"
#include "parallel/loss_scale.h"
#include "settings/run_schedule.h"
#include "tessera/spread.h"

namespace tessera {

enum class UnitWrap { kBlocks, kByClass, kBySize, kNone };
enum class MergeAccumulation { kAuto, kOn, kOff };

// Whether the short last group of an epoch counts towards the length of a run. transformers up to 4.51 leaves it out:
// 125 micro-batches at accumulation 4 over 3 epochs are 3 x 31 = 93 updates, 32 of them in the first epoch, and the run
// ends at epoch 2.93. From 4.52 on it is counted: 96 updates, 3 whole epochs.
enum class ShortGroup { kNotCounted, kCounted };

struct ModelSettings {
  std::string name_or_path;    // a folder, or a hub name that the local cache holds; empty: from scratch
  std::string config_name;     // config.json of a model from scratch
  std::string tokenizer_name;  // empty: the model folder's own
  // Sizes of a model from scratch.
  std::int64_t vocab_size = 0, hidden_size = 0, num_layers = 0, num_heads = 0, ff_dim = 0, seq_length = 0;
  double dropout = 0;
  bool learned_positions = false;
};

struct DataSettings {
  std::string train_file, validation_file;  // text; the latter empty: no evaluation
  std::string data_dir;                     // images
  std::int64_t image_size = 0;              // side length that the model sees, in pixels
  std::int64_t max_train_samples = 0;       // over all ranks; 0: all
  std::int64_t max_eval_samples = 0;
  std::optional<std::int64_t> subset_seed;  // rows as `datasets`' shuffle(seed).select(range(N)); none: the first N
  std::int64_t max_length = 0;
  std::string label_mode;  // a name that label_mode_of() takes
  bool shuffle = true;
  bool drop_last = false;          // an epoch's last batch, if it is not full
  bool sampler_drop_last = false;  // images: those that do not divide evenly between the ranks; else some repeat
  int num_workers = 0;             // -1: loader_options() in jobs/jobs.h decides
  int prefetch_factor = 0;         // batches prepared ahead per worker
};

// How rows are put together to rows of max_length tokens: TRL's packing strategies.
enum class Packing { kNone, kBestFit, kSplit, kWrapped };

// What a .txt file holds.
enum class TextUnit { kDocument, kLine, kLineWithoutEnd };

// The rows of sft and lm.
struct RowSettings {
  std::string dataset_name, train_split, test_split;  // as data_files of a folder or a hub's name say
  std::string mix;                                    // "a.jsonl=0.7,b.jsonl=0.3" in place of --train_file
  std::string columns;                                // "prompt=question,completion=answer"
  std::string text_column;                            // of plain text
  std::string chat_template_path;                     // of the tokenizer, if empty
  bool completion_only = true;                        // of rows with a prompt
  bool assistant_only = false;
  Packing packing = Packing::kNone, eval_packing = Packing::kNone;
  bool appends_end = true;                         // lm: an end token after each document
  bool attention_across_documents = false;         // lm
  TextUnit text_unit = TextUnit::kLineWithoutEnd;  // lm chooses
  double validation_percent = 0;                   // lm: of the training rows, where there are no others to evaluate on
};

// What is gathered at once.
struct WrapSettings {
  UnitWrap wrap = UnitWrap::kBlocks;
  std::vector<std::string> classes;  // kByClass: names without the module path
  std::int64_t min_num_params = 0;   // kBySize
};

struct PrecisionSettings {
  NumberType compute = NumberType::kFloat32;
  bool is_amp = false;               // parameters stay float32 and the model casts what it computes with
  bool half_on_gpu = false;          // the user chose no type: float16 if the device is a GPU
  std::optional<NumberType> reduce;  // of gradients between ranks; none: the compute type
  std::optional<NumberType> buffers;
  std::optional<bool> tf32;  // none: libtorch's own choice
  LossScaleOptions loss_scale;
};

struct OptimizerSettings {
  std::string optim;  // a word of optimizers()
  double learning_rate = 0;
  OptimizerNumbers numbers;
  bool decays_all = false;   // weight decay covers biases and norms too, as torch's optimizers do
  double max_grad_norm = 0;  // 0: no clipping
};

// Adam with an epsilon of 0, as the update computes it: 0 / 0 for a parameter whose gradients were all 0.
bool divides_by_zero(const OptimizerSettings& optimizer);

struct LoopSettings {
  std::int64_t batch_size = 0, eval_batch_size = 0;  // per rank and micro-step
  std::int64_t accumulation = 1;
  double num_epochs = 0;
  std::int64_t max_steps = 0;  // overrides the epochs unless it is 0
  std::int64_t seed = 0, data_seed = 0;
  bool gradient_checkpointing = false;
  MergeAccumulation merge_accumulation = MergeAccumulation::kAuto;
  ShortGroup short_group = ShortGroup::kNotCounted;
  bool stop_on_nan = true;
  bool full_determinism = false;  // bitwise reproducible on GPUs, too
};

// TrainSettings::flow says when.
struct EvaluationSettings {
  bool on_start = false, at_end = false;
  bool load_best_model_at_end = false;
  std::string metric_for_best_model;  // "loss", "exact_match", "f1" or "accuracy"; empty: no best model
  bool greater_is_better = false;
  int early_stopping_patience = 0;  // evaluations without a better one; 0: never stop early
  double early_stopping_threshold = 0;
  bool reports_perplexity = false;
  bool generates = true;  // text: exact match and F1 at the end, by greedy generation
  std::int64_t max_new_tokens = 50;
  bool local_metrics = false;  // images: report rank 0's own metrics
};

// How checkpoints are written. Async: from a copy, while training goes on. The names are torchtitan's.
enum class SaveMode { kDisabled, kAsync, kAsyncWithPinnedMemory };

// What follows if a checkpoint cannot be written.
enum class SaveErrors { kStop, kWarn };

struct OutputSettings {
  std::string output_dir, logging_dir, log_dir;
  int save_total_limit = 0;  // 0: keep all
  bool save_only_model = false;
  SaveMode save_mode = SaveMode::kAsync;
  SaveErrors save_errors = SaveErrors::kStop;
  std::chrono::milliseconds save_before_timeout{0};  // of a Slurm job; 0: not
  bool save_hf_weights = false;                      // checkpoints also have a file that transformers reads
  std::string resume_from_checkpoint;                // a folder; empty: none, or as the next says
  bool resume_from_latest = false;                   // the newest complete checkpoint of output_dir
  bool overwrites = false;                           // a finished model in output_dir
  bool shows_progress = true;
};

struct ReportSettings {
  bool tensorboard = false, wandb = false;
  bool wall_clock_breakdown = false;                   // with each log line
  std::int64_t first_profiled = 0, last_profiled = 0;  // steps, counted from 1; 0: none
  std::string run_name;
  std::string wandb_name, wandb_mode, wandb_dir, wandb_run_id, wandb_project;
};

// Memory logs while the run goes on.
struct MonitorSettings {
  bool is_on = false;
  std::chrono::milliseconds period{};
  std::string job;  // the logs' folders below output_dir; on rank 0, once the run has started
};

struct TrainSettings {
  std::string job;  // its name
  bool dry_run = false, predicts_speed = false;
  bool use_cpu = false;
  ModelSettings model;
  DataSettings data;
  RowSettings rows;
  SpreadOptions spread;  // "auto" is already decided
  // With offload: bytes that a rank may use on its GPU, at most nine tenths of it; none: as few as possible.
  std::optional<std::int64_t> gpu_memory;
  WrapSettings wrap;
  PrecisionSettings precision;
  OptimizerSettings optimizer;
  ScheduleOptions schedule;  // total_steps: a ds_config's number; 0: the run's own
  LoopSettings loop;
  FlowOptions flow;
  EvaluationSettings evaluation;
  OutputSettings output;
  ReportSettings reports;
  MonitorSettings monitor;
};

}  // namespace tessera
