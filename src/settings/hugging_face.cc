#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "settings/declared.h"

namespace tessera {

namespace {

using A = ForeignArgument::Form;

constexpr bool kRefused = true, kAccepted = false;
constexpr const char* kNoHub = "there is no hub in Tessera";
constexpr const char* kNoTpu = "Tessera runs on CPUs and NVIDIA GPUs";
constexpr const char* kNoCompiler = "kernels are compiled ahead of time; leave it out";
constexpr const char* kNoTokens = "samples are counted, not tokens; `tessera data inspect` counts tokens";
constexpr const char* kNoLogits = "evaluation keeps no logits";
constexpr const char* kOwnLog = "TESSERA_LOG sets what is shown";

const std::vector<ForeignArgument> kAcceptedArguments = {
    {"overwrite_output_dir", A::kBool, kAccepted, "checkpoints of other runs stay, except one of the same step",
     nullptr},
    {"prediction_loss_only", A::kBool, kAccepted, kNoLogits, nullptr},
    {"eval_accumulation_steps", A::kNumber, kAccepted, kNoLogits, nullptr},
    {"torch_empty_cache_steps", A::kNumber, kAccepted, "the memory of a run is planned in advance", nullptr},
    {"log_level", A::kText, kAccepted, kOwnLog, nullptr},
    {"log_level_replica", A::kText, kAccepted, kOwnLog, nullptr},
    {"log_on_each_node", A::kBool, kAccepted, kOwnLog, nullptr},
    {"logging_nan_inf_filter", A::kBool, kAccepted,
     "a loss that is not finite ends the run, unless --no_stop_on_nan is given", nullptr},
    {"restore_callback_states_from_checkpoint", A::kBool, kAccepted, "a resumed run restores all its state", nullptr},
    {"fp16_opt_level", A::kText, kAccepted, "only Apex has levels", nullptr},
    {"local_rank", A::kNumber, kAccepted, "the launcher's variables set the rank", nullptr},
    {"remove_unused_columns", A::kBool, kAccepted, "only what the job needs is read", nullptr},
    {"group_by_length", A::kBool, kAccepted, "batches are packed: there is no padding to save", nullptr},
    {"length_column_name", A::kText, kAccepted, "lengths are computed", nullptr},
    {"project", A::kText, kAccepted, "it is for Trackio; --wandb_project is for W&B", nullptr},
    {"trackio_space_id", A::kText, kAccepted, "there is no Trackio", nullptr},
    {"ddp_find_unused_parameters", A::kBool, kAccepted, "unused parameters are always found", nullptr},
    {"ddp_bucket_cap_mb", A::kNumber, kAccepted, "blocks of the model are reduced, not buckets", nullptr},
    {"dataloader_pin_memory", A::kBool, kAccepted, "batches of token ids are small", nullptr},
    {"dataloader_persistent_workers", A::kBool, kAccepted, "workers are threads", nullptr},
    {"skip_memory_metrics", A::kBool, kAccepted, "the summary always has them", nullptr},
    {"hub_model_id", A::kText, kAccepted, kNoHub, nullptr},
    {"hub_strategy", A::kText, kAccepted, kNoHub, nullptr},
    {"hub_token", A::kText, kAccepted, kNoHub, nullptr, true},
    {"hub_private_repo", A::kBool, kAccepted, kNoHub, nullptr},
    {"hub_always_push", A::kBool, kAccepted, kNoHub, nullptr},
    {"hub_revision", A::kText, kAccepted, kNoHub, nullptr},
    {"push_to_hub_model_id", A::kText, kAccepted, kNoHub, nullptr},
    {"push_to_hub_organization", A::kText, kAccepted, kNoHub, nullptr},
    {"push_to_hub_token", A::kText, kAccepted, kNoHub, nullptr, true},
    {"gradient_checkpointing_kwargs", A::kText, kAccepted, "there is only one kind of checkpointing", nullptr},
    {"include_inputs_for_metrics", A::kBool, kAccepted, "the job has its own metrics", nullptr},
    {"include_for_metrics", A::kText, kAccepted, "the job has its own metrics", nullptr},
    {"batch_eval_metrics", A::kBool, kAccepted, kNoLogits, nullptr},
    {"eval_do_concat_batches", A::kBool, kAccepted, kNoLogits, nullptr},
    {"eval_use_gather_object", A::kBool, kAccepted, kNoLogits, nullptr},
    {"ray_scope", A::kText, kAccepted, "there is no Ray", nullptr},
    {"use_liger_kernel", A::kBool, kAccepted, "kernels are fused anyway", nullptr},
    {"liger_kernel_config", A::kText, kAccepted, "kernels are fused anyway", nullptr},
};

const std::vector<ForeignArgument> kRefusedArguments = {
    {"do_train", A::kBool, kRefused, "`tessera train` trains; `tessera evaluate` works on the model's folder", "true"},
    {"do_predict", A::kBool, kRefused, "`tessera evaluate` and `tessera generate` work on the model's folder", "false"},
    {"push_to_hub", A::kBool, kRefused,
     "there is no hub in Tessera; upload the model's folder from --output_dir yourself", "false"},
    {"save_safetensors", A::kBool, kRefused,
     "model folders are written as safetensors; `tessera convert` writes other formats", "true"},
    {"save_on_each_node", A::kBool, kRefused, "nodes share --output_dir", "false"},
    {"use_mps_device", A::kBool, kRefused, kNoTpu, "false"},
    {"jit_mode_eval", A::kBool, kRefused, kNoCompiler, "false"},
    {"half_precision_backend", A::kText, kRefused, "there is no Apex; leave it out", "auto|cuda_amp|cpu_amp|amp"},
    {"fp16_backend", A::kText, kRefused, "there is no Apex; leave it out", "auto|cuda_amp|cpu_amp|amp"},
    {"fp16_full_eval", A::kBool, kRefused, "evaluation computes in the type of training; give --fp16", "false"},
    {"bf16_full_eval", A::kBool, kRefused, "evaluation computes in the type of training; give --bf16", "false"},
    {"ddp_backend", A::kText, kRefused, "give --backend nccl or --backend mpi", ""},
    {"ddp_timeout", A::kNumber, kRefused, "give --comm_timeout, for example 30m", "1800"},
    {"ddp_broadcast_buffers", A::kBool, kRefused, "the engine keeps buffers equal on all ranks", "true"},
    {"tpu_num_cores", A::kNumber, kRefused, kNoTpu, ""},
    {"tpu_metrics_debug", A::kBool, kRefused, kNoTpu, "false"},
    {"debug", A::kText, kRefused, "a loss or norm that is not finite is reported with step and rank anyway", ""},
    {"past_index", A::kNumber, kRefused, "models keep nothing from batch to batch", "-1"},
    {"label_names", A::kText, kRefused, "the job knows its labels", "labels"},
    {"ignore_data_skip", A::kBool, kRefused, "a resumed run continues with the next batch, at no cost", "false"},
    {"accelerator_config", A::kText, kRefused, "batch sizes on the command line are per rank", "{}"},
    {"parallelism_config", A::kText, kRefused, "give --strategy", ""},
    {"label_smoothing_factor", A::kNumber, kRefused, "labels are not smoothed", "0"},
    {"optim_args", A::kText, kRefused, "give --adam_beta1, --adam_beta2, --adam_epsilon or --momentum", ""},
    {"optim_target_modules", A::kText, kRefused, "all parameters are trained by one optimizer", ""},
    {"adafactor", A::kBool, kRefused, "optimizers are AdamW, Adam and SGD: use --optim", "false"},
    {"use_legacy_prediction_loop", A::kBool, kRefused, "there is only one evaluation loop", "false"},
    {"mp_parameters", A::kText, kRefused, "that is for SageMaker; give --strategy", ""},
    {"auto_find_batch_size", A::kBool, kRefused,
     "a message before the first step says what does not fit, and what would", "false"},
    {"torchdynamo", A::kText, kRefused, kNoCompiler, ""},
    {"torch_compile", A::kBool, kRefused, kNoCompiler, "false"},
    {"torch_compile_backend", A::kText, kRefused, kNoCompiler, ""},
    {"torch_compile_mode", A::kText, kRefused, kNoCompiler, ""},
    {"include_tokens_per_second", A::kBool, kRefused, kNoTokens, "false"},
    {"include_num_input_tokens_seen", A::kText, kRefused, kNoTokens, "no|false|False"},
    {"neftune_noise_alpha", A::kNumber, kRefused, "embeddings get no noise", ""},
    {"average_tokens_across_devices", A::kBool, kRefused, "the loss is always the mean over all ranks' tokens", "true"},
};

bool says_no(const ForeignArgument& argument, const Setting& setting) {
  if (argument.neutral == nullptr) return true;
  for (const std::string& neutral : split(argument.neutral, '|')) {
    if (neutral.empty() ? setting.text().empty() : setting.parse(neutral) == setting.parse(setting.text())) return true;
  }
  return false;
}

}  // namespace

const std::vector<ForeignArgument>& foreign_arguments() {
  static const std::vector<ForeignArgument> all = [] {
    std::vector<ForeignArgument> arguments = kAcceptedArguments;
    arguments.insert(arguments.end(), kRefusedArguments.begin(), kRefusedArguments.end());
    return arguments;
  }();
  return all;
}

void declare_foreign(Schema& schema, DeclaredSettings& s) {
  for (const ForeignArgument& argument : foreign_arguments()) {
    const SettingTraits traits = {.is_secret = argument.is_secret, .is_hidden = true};
    if (argument.form == A::kBool) schema.boolean(argument.name, &s.foreign_flags.emplace_back(), "", traits);
    if (argument.form == A::kNumber) schema.real(argument.name, &s.foreign_numbers.emplace_back(), "", traits);
    if (argument.form == A::kText) schema.text(argument.name, &s.foreign_words.emplace_back(), "", traits);
  }
}

void check_foreign(const Schema& schema, std::vector<std::string>& notes) {
  std::vector<std::string> accepted;
  for (const ForeignArgument& argument : foreign_arguments()) {
    const Setting& setting = schema.at(argument.name);
    if (!setting.is_set()) continue;
    if (!argument.is_refused) {
      accepted.push_back(fmt::format("--{} ({})", argument.name, argument.reason));
    } else if (!says_no(argument, setting)) {
      throw UsageError(
          fmt::format("--{}={} ({}): {}", argument.name, setting.shown_text(), setting.origin(), argument.reason));
    }
  }
  if (!accepted.empty()) notes.push_back("accepted, but without effect here: " + join(accepted, ", "));
}

}  // namespace tessera
