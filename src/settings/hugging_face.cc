#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "settings/declared.h"

namespace tessera {

namespace {

using A = ForeignArgument::Form;

constexpr const char* kNoHub = "there is no hub in Tessera";
constexpr const char* kNoTpu = "Tessera runs on CPUs and NVIDIA GPUs";
constexpr const char* kNoCompiler = "kernels are compiled ahead of time; leave it out";
constexpr const char* kNoTokens = "samples are counted, not tokens; `tessera data inspect` counts tokens";
constexpr const char* kNoLogits = "evaluation keeps no logits";
constexpr const char* kOwnLog = "TESSERA_LOG sets what is shown";

// Accepted without effect, then those that are refused.
const std::vector<ForeignArgument> kArguments = {
    {"prediction_loss_only", A::kBool, kNoLogits},
    {"eval_accumulation_steps", A::kNumber, kNoLogits},
    {"torch_empty_cache_steps", A::kNumber, "the memory of a run is planned in advance"},
    {"log_level", A::kText, kOwnLog},
    {"log_level_replica", A::kText, kOwnLog},
    {"log_on_each_node", A::kBool, kOwnLog},
    {"logging_nan_inf_filter", A::kBool, "a loss that is not finite ends the run, unless --no_stop_on_nan is given"},
    {"restore_callback_states_from_checkpoint", A::kBool, "a resumed run restores all its state"},
    {"fp16_opt_level", A::kText, "only Apex has levels"},
    {"local_rank", A::kNumber, "the launcher's variables set the rank"},
    {"remove_unused_columns", A::kBool, "only what the job needs is read"},
    {"group_by_length", A::kBool, "batches are packed: there is no padding to save"},
    {"length_column_name", A::kText, "lengths are computed"},
    {"project", A::kText, "it is for Trackio; --wandb_project is for W&B"},
    {"trackio_space_id", A::kText, "there is no Trackio"},
    {"ddp_find_unused_parameters", A::kBool, "unused parameters are always found"},
    {"ddp_bucket_cap_mb", A::kNumber, "blocks of the model are reduced, not buckets"},
    {"dataloader_pin_memory", A::kBool, "batches of token ids are small"},
    {"dataloader_persistent_workers", A::kBool, "workers are threads"},
    {"skip_memory_metrics", A::kBool, "the summary always has them"},
    {"hub_model_id", A::kText, kNoHub},
    {"hub_strategy", A::kText, kNoHub},
    {"hub_token", A::kText, kNoHub, nullptr, true},
    {"hub_private_repo", A::kBool, kNoHub},
    {"hub_always_push", A::kBool, kNoHub},
    {"hub_revision", A::kText, kNoHub},
    {"push_to_hub_model_id", A::kText, kNoHub},
    {"push_to_hub_organization", A::kText, kNoHub},
    {"push_to_hub_token", A::kText, kNoHub, nullptr, true},
    {"gradient_checkpointing_kwargs", A::kText, "there is only one kind of checkpointing"},
    {"include_inputs_for_metrics", A::kBool, "the job has its own metrics"},
    {"include_for_metrics", A::kText, "the job has its own metrics"},
    {"batch_eval_metrics", A::kBool, kNoLogits},
    {"eval_do_concat_batches", A::kBool, kNoLogits},
    {"eval_use_gather_object", A::kBool, kNoLogits},
    {"ray_scope", A::kText, "there is no Ray"},
    {"use_liger_kernel", A::kBool, "kernels are fused anyway"},
    {"liger_kernel_config", A::kText, "kernels are fused anyway"},
    {"use_cache", A::kBool, "only generation keeps keys and values"},
    {"activation_checkpointing_kwargs", A::kText, "there is only one kind of checkpointing"},
    {"trackio_bucket_id", A::kText, "there is no Trackio"},
    {"trackio_static_space_id", A::kText, "there is no Trackio"},
    {"enable_jit_checkpoint", A::kBool, "SIGTERM always saves a checkpoint first, unless --save_strategy is no"},
    {"dataloader_multiprocessing_context", A::kText, "workers are threads"},
    {"dataloader_in_order", A::kBool, "batches always come in order"},
    {"ddp_static_graph", A::kBool, "unused parameters are always found"},
    {"do_train", A::kBool, "`tessera train` trains; `tessera evaluate` works on the model's folder", "true"},
    {"do_predict", A::kBool, "`tessera evaluate` and `tessera generate` work on the model's folder", "false"},
    {"push_to_hub", A::kBool, "there is no hub in Tessera; upload the model's folder from --output_dir yourself",
     "false"},
    {"save_safetensors", A::kBool, "model folders are written as safetensors; `tessera convert` writes other formats",
     "true"},
    {"save_on_each_node", A::kBool, "nodes share --output_dir", "false"},
    {"use_mps_device", A::kBool, kNoTpu, "false"},
    {"jit_mode_eval", A::kBool, kNoCompiler, "false"},
    {"half_precision_backend", A::kText, "there is no Apex; leave it out", "auto|cuda_amp|cpu_amp|amp"},
    {"fp16_backend", A::kText, "there is no Apex; leave it out", "auto|cuda_amp|cpu_amp|amp"},
    {"fp16_full_eval", A::kBool, "evaluation computes in the type of training; give --fp16", "false"},
    {"bf16_full_eval", A::kBool, "evaluation computes in the type of training; give --bf16", "false"},
    {"ddp_backend", A::kText, "give --backend nccl or --backend mpi", ""},
    {"ddp_timeout", A::kNumber, "give --comm_timeout, for example 30m", "1800"},
    {"ddp_broadcast_buffers", A::kBool, "the engine keeps buffers equal on all ranks", "true"},
    {"tpu_num_cores", A::kNumber, kNoTpu, ""},
    {"tpu_metrics_debug", A::kBool, kNoTpu, "false"},
    {"debug", A::kText, "a loss or norm that is not finite is reported with step and rank anyway", ""},
    {"past_index", A::kNumber, "models keep nothing from batch to batch", "-1"},
    {"label_names", A::kText, "the job knows its labels", "labels"},
    {"ignore_data_skip", A::kBool, "a resumed run continues with the next batch, at no cost", "false"},
    {"accelerator_config", A::kText, "batch sizes on the command line are per rank", "{}"},
    {"parallelism_config", A::kText, "give --strategy", ""},
    {"label_smoothing_factor", A::kNumber, "labels are not smoothed", "0"},
    {"optim_args", A::kText, "give --adam_beta1, --adam_beta2, --adam_epsilon or --momentum", ""},
    {"optim_target_modules", A::kText, "all parameters are trained by one optimizer", ""},
    {"adafactor", A::kBool, "optimizers are AdamW, Adam and SGD: use --optim", "false"},
    {"use_legacy_prediction_loop", A::kBool, "there is only one evaluation loop", "false"},
    {"mp_parameters", A::kText, "that is for SageMaker; give --strategy", ""},
    {"auto_find_batch_size", A::kBool, "a message before the first step says what does not fit, and what would",
     "false"},
    {"torchdynamo", A::kText, kNoCompiler, ""},
    {"torch_compile", A::kBool, kNoCompiler, "false"},
    {"torch_compile_backend", A::kText, kNoCompiler, ""},
    {"torch_compile_mode", A::kText, kNoCompiler, ""},
    {"include_tokens_per_second", A::kBool, kNoTokens, "false"},
    {"include_num_input_tokens_seen", A::kText, kNoTokens, "no|false|False"},
    {"neftune_noise_alpha", A::kNumber, "embeddings get no noise", ""},
    {"train_sampling_strategy", A::kText, "give --no_shuffle for the order of the file; rows are not chosen by length",
     "random|group_by_length"},
    {"average_tokens_across_devices", A::kBool, "the loss is always the mean over all ranks' tokens", "true"},
};

constexpr const char* kNoAdapters = "all parameters are trained: there are no adapters";
constexpr const char* kNoQuantisation =
    "weights are not quantised; --bf16, --strategy full_shard and --offload_param save memory";
constexpr const char* kNoOtherSplit = "a model is split by --strategy alone: full_shard, zero3";
constexpr const char* kHalfTypes = "give --fp16 or --bf16";
constexpr const char* kRanks = "`tessera launch --nproc_per_node N train ...` starts ranks";

// Words of other trainers (Lightning, accelerate's and DeepSpeed's examples, PEFT, timm) that people try.
const std::vector<ForeignArgument> kOtherWords = {
    {"flash_attn", A::kBool, "attention is always fused"},
    {"use_flash_attn", A::kBool, "attention is always fused"},
    {"use_flash_attention", A::kBool, "attention is always fused"},
    {"use_flash_attention_2", A::kBool, "attention is always fused"},
    {"attn_implementation", A::kText, "attention is always fused"},
    {"use_fast_tokenizer", A::kBool, "there is one tokenizer, a fast one"},
    {"trust_remote_code", A::kBool, "no code of a model's folder is run; `tessera inspect FOLDER` says what it holds",
     "false"},
    {"lr_find", A::kBool,
     "no rate is searched; compare a few --learning_rate with --max_steps by `tessera runs compare`", "false"},
    {"auto_lr_find", A::kBool,
     "no rate is searched; compare a few --learning_rate with --max_steps by `tessera runs compare`", "false"},
    {"deepspeed_config", A::kText, "give --deepspeed FILE", ""},
    {"zero_stage", A::kNumber, "give --strategy zero1, zero2 or zero3", "0"},
    {"use_peft", A::kBool, kNoAdapters, "false"},
    {"use_lora", A::kBool, kNoAdapters, "false"},
    {"lora_r", A::kNumber, kNoAdapters, ""},
    {"lora_alpha", A::kNumber, kNoAdapters, ""},
    {"lora_dropout", A::kNumber, kNoAdapters, ""},
    {"lora_target_modules", A::kText, kNoAdapters, ""},
    {"lora_target_parameters", A::kText, kNoAdapters, ""},
    {"lora_modules_to_save", A::kText, kNoAdapters, ""},
    {"lora_task_type", A::kText, kNoAdapters, "CAUSAL_LM"},
    {"use_rslora", A::kBool, kNoAdapters, "false"},
    {"use_dora", A::kBool, kNoAdapters, "false"},
    {"load_in_8bit", A::kBool, kNoQuantisation, "false"},
    {"load_in_4bit", A::kBool, kNoQuantisation, "false"},
    {"tensor_parallel_size", A::kNumber, kNoOtherSplit, "1"},
    {"pipeline_parallel_size", A::kNumber, kNoOtherSplit, "1"},
    {"mixed_precision", A::kText, kHalfTypes, "no"},
    {"precision", A::kText, kHalfTypes, "32|32-true"},
    {"torch_dtype", A::kText, kHalfTypes, "auto|float32"},
    {"amp", A::kBool, kHalfTypes, "false"},
    {"use_amp", A::kBool, kHalfTypes, "false"},
    {"ema", A::kBool, "weights are not averaged over steps", "false"},
    {"use_ema", A::kBool, "weights are not averaged over steps", "false"},
    {"gpus", A::kText, kRanks, "1"},
    {"num_gpus", A::kNumber, kRanks, "1"},
    {"num_nodes", A::kNumber, "`tessera launch` on each node, or srun, starts ranks on several nodes", "1"},
    {"max_epochs", A::kNumber, "give --num_train_epochs", ""},
    {"accumulate_grad_batches", A::kNumber, "give --gradient_accumulation_steps", ""},
    {"gradient_clip_val", A::kNumber, "give --max_grad_norm", ""},
    {"clip_grad_norm", A::kNumber, "give --max_grad_norm", ""},
    {"warmup_epochs", A::kNumber, "give --warmup_ratio or --warmup_steps", "0"},
    {"checkpointing_steps", A::kText, "give --save_strategy steps --save_steps N, or --save_strategy epoch", ""},
    {"with_tracking", A::kBool, "give --report_to tensorboard,wandb", "false"},
    {"wandb_entity", A::kText, "`wandb sync` uploads the run, and takes the account", ""},
};

bool says_no(const ForeignArgument& argument, const Setting& setting) {
  for (const std::string& neutral : split(argument.neutral, '|')) {
    if (neutral.empty() ? setting.text().empty() : setting.parse(neutral) == setting.parse(setting.text())) return true;
  }
  return false;
}

}  // namespace

const std::vector<ForeignArgument>& foreign_arguments() {
  return kArguments;
}

const std::vector<ForeignArgument>& other_words() {
  return kOtherWords;
}

void declare_foreign(Schema& schema, const JobTraits& job) {
  const auto declare = [&](const ForeignArgument& argument) {
    if (schema.has(argument.name)) return;  // some job has it as a setting of its own
    const SettingTraits traits = {.is_secret = argument.is_secret, .is_hidden = true};
    if (argument.form == A::kBool) schema.boolean(argument.name, &schema.keep<bool>(), "", traits);
    if (argument.form == A::kNumber) schema.real(argument.name, &schema.keep<double>(), "", traits);
    if (argument.form == A::kText) schema.text(argument.name, &schema.keep<std::string>(), "", traits);
  };
  for (const ForeignArgument& argument : job.foreign) declare(argument);
  for (const ForeignArgument& argument : kArguments) declare(argument);
  for (const ForeignArgument& argument : kOtherWords) declare(argument);
}

void check_foreign(const Schema& schema, const JobTraits& job, std::vector<std::string>& notes) {
  std::vector<std::string> accepted;
  const auto check = [&](const ForeignArgument& argument) {
    const Setting& setting = schema.at(argument.name);
    if (!setting.is_set() || !setting.is_hidden()) return;
    if (!argument.is_refused()) {
      accepted.push_back(fmt::format("--{} ({})", argument.name, argument.reason));
    } else if (!says_no(argument, setting)) {
      throw UsageError(
          fmt::format("--{}={} ({}): {}", argument.name, setting.shown_text(), setting.origin(), argument.reason));
    }
  };
  for (const ForeignArgument& argument : job.foreign) check(argument);
  for (const ForeignArgument& argument : kArguments) check(argument);
  for (const ForeignArgument& argument : kOtherWords) check(argument);
  if (!accepted.empty()) notes.push_back("accepted, but without effect here: " + join(accepted, ", "));
}

}  // namespace tessera
