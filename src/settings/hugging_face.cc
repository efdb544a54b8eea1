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
    {"average_tokens_across_devices", A::kBool, "the loss is always the mean over all ranks' tokens", "true"},
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

void declare_foreign(Schema& schema) {
  for (const ForeignArgument& argument : kArguments) {
    const SettingTraits traits = {.is_secret = argument.is_secret, .is_hidden = true};
    if (argument.form == A::kBool) schema.boolean(argument.name, &schema.keep<bool>(), "", traits);
    if (argument.form == A::kNumber) schema.real(argument.name, &schema.keep<double>(), "", traits);
    if (argument.form == A::kText) schema.text(argument.name, &schema.keep<std::string>(), "", traits);
  }
}

void check_foreign(const Schema& schema, std::vector<std::string>& notes) {
  std::vector<std::string> accepted;
  for (const ForeignArgument& argument : kArguments) {
    const Setting& setting = schema.at(argument.name);
    if (!setting.is_set()) continue;
    if (!argument.is_refused()) {
      accepted.push_back(fmt::format("--{} ({})", argument.name, argument.reason));
    } else if (!says_no(argument, setting)) {
      throw UsageError(
          fmt::format("--{}={} ({}): {}", argument.name, setting.shown_text(), setting.origin(), argument.reason));
    }
  }
  if (!accepted.empty()) notes.push_back("accepted, but without effect here: " + join(accepted, ", "));
}

}  // namespace tessera
