#include "settings/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace tessera {

namespace {

using F = ForeignArgument::Form;

constexpr bool kRefused = true, kAccepted = false;
constexpr const char* kNoHub = "there is no hub in Tessera";
constexpr const char* kNoTpu = "Tessera runs on CPUs and NVIDIA GPUs";
constexpr const char* kNoCompiler = "kernels are compiled ahead of time; leave it out";
constexpr const char* kNoTokens = "samples are counted, not tokens; `tessera data inspect` tells a row's tokens";
constexpr const char* kNoLogits = "evaluation keeps no logits";
constexpr const char* kOwnLog = "TESSERA_LOG says what is shown";

const std::vector<ForeignArgument> kAcceptedArguments = {
    {"overwrite_output_dir", F::kBool, kAccepted, "checkpoints of another run stay, but for one of the same step",
     nullptr},
    {"prediction_loss_only", F::kBool, kAccepted, kNoLogits, nullptr},
    {"eval_accumulation_steps", F::kNumber, kAccepted, kNoLogits, nullptr},
    {"torch_empty_cache_steps", F::kNumber, kAccepted, "the memory that a run needs is planned", nullptr},
    {"log_level", F::kText, kAccepted, kOwnLog, nullptr},
    {"log_level_replica", F::kText, kAccepted, kOwnLog, nullptr},
    {"log_on_each_node", F::kBool, kAccepted, kOwnLog, nullptr},
    {"logging_nan_inf_filter", F::kBool, kAccepted, "a loss that is no number ends the run, unless --no_stop_on_nan",
     nullptr},
    {"restore_callback_states_from_checkpoint", F::kBool, kAccepted, "a resumed run has all its state", nullptr},
    {"fp16_opt_level", F::kText, kAccepted, "only Apex has levels", nullptr},
    {"local_rank", F::kNumber, kAccepted, "ranks are told by their launcher's variables", nullptr},
    {"remove_unused_columns", F::kBool, kAccepted, "only what the job needs is read", nullptr},
    {"group_by_length", F::kBool, kAccepted, "batches are packed: there is no padding to save", nullptr},
    {"length_column_name", F::kText, kAccepted, "lengths are counted", nullptr},
    {"project", F::kText, kAccepted, "it is Trackio's; --wandb_project is W&B's", nullptr},
    {"trackio_space_id", F::kText, kAccepted, "there is no Trackio", nullptr},
    {"ddp_find_unused_parameters", F::kBool, kAccepted, "unused parameters are always found", nullptr},
    {"ddp_bucket_cap_mb", F::kNumber, kAccepted, "blocks of the model are reduced, not buckets", nullptr},
    {"dataloader_pin_memory", F::kBool, kAccepted, "batches of token ids are small", nullptr},
    {"dataloader_persistent_workers", F::kBool, kAccepted, "workers are threads", nullptr},
    {"skip_memory_metrics", F::kBool, kAccepted, "the summary always has them", nullptr},
    {"hub_model_id", F::kText, kAccepted, kNoHub, nullptr},
    {"hub_strategy", F::kText, kAccepted, kNoHub, nullptr},
    {"hub_token", F::kText, kAccepted, kNoHub, nullptr, true},
    {"hub_private_repo", F::kBool, kAccepted, kNoHub, nullptr},
    {"hub_always_push", F::kBool, kAccepted, kNoHub, nullptr},
    {"hub_revision", F::kText, kAccepted, kNoHub, nullptr},
    {"push_to_hub_model_id", F::kText, kAccepted, kNoHub, nullptr},
    {"push_to_hub_organization", F::kText, kAccepted, kNoHub, nullptr},
    {"push_to_hub_token", F::kText, kAccepted, kNoHub, nullptr, true},
    {"gradient_checkpointing_kwargs", F::kText, kAccepted, "there is one way of checkpointing", nullptr},
    {"include_inputs_for_metrics", F::kBool, kAccepted, "the job has its own metrics", nullptr},
    {"include_for_metrics", F::kText, kAccepted, "the job has its own metrics", nullptr},
    {"batch_eval_metrics", F::kBool, kAccepted, kNoLogits, nullptr},
    {"eval_do_concat_batches", F::kBool, kAccepted, kNoLogits, nullptr},
    {"eval_use_gather_object", F::kBool, kAccepted, kNoLogits, nullptr},
    {"ray_scope", F::kText, kAccepted, "there is no Ray", nullptr},
    {"use_liger_kernel", F::kBool, kAccepted, "kernels are fused anyway", nullptr},
    {"liger_kernel_config", F::kText, kAccepted, "kernels are fused anyway", nullptr},
};

const std::vector<ForeignArgument> kRefusedArguments = {
    {"do_train", F::kBool, kRefused, "`tessera train` trains; `tessera evaluate` works on the model's folder", "true"},
    {"do_predict", F::kBool, kRefused, "`tessera evaluate` and `tessera generate` work on the model's folder", "false"},
    {"push_to_hub", F::kBool, kRefused,
     "there is no hub in Tessera; the model's folder in --output_dir is what one uploads", "false"},
    {"save_safetensors", F::kBool, kRefused, "model folders are written as safetensors; `tessera convert` makes others",
     "true"},
    {"save_on_each_node", F::kBool, kRefused, "nodes share --output_dir", "false"},
    {"use_mps_device", F::kBool, kRefused, kNoTpu, "false"},
    {"jit_mode_eval", F::kBool, kRefused, kNoCompiler, "false"},
    {"half_precision_backend", F::kText, kRefused, "there is no Apex; leave it out", "auto|cuda_amp|cpu_amp|amp"},
    {"fp16_backend", F::kText, kRefused, "there is no Apex; leave it out", "auto|cuda_amp|cpu_amp|amp"},
    {"fp16_full_eval", F::kBool, kRefused, "evaluation computes in the type of training; give --fp16", "false"},
    {"bf16_full_eval", F::kBool, kRefused, "evaluation computes in the type of training; give --bf16", "false"},
    {"ddp_backend", F::kText, kRefused, "give --backend nccl or --backend mpi", ""},
    {"ddp_timeout", F::kNumber, kRefused, "give --comm_timeout, for example 30m", "1800"},
    {"ddp_broadcast_buffers", F::kBool, kRefused, "buffers are kept alike on all ranks by the engine", "true"},
    {"tpu_num_cores", F::kNumber, kRefused, kNoTpu, ""},
    {"tpu_metrics_debug", F::kBool, kRefused, kNoTpu, "false"},
    {"debug", F::kText, kRefused, "a loss or norm that is not finite is named by step and rank anyway", ""},
    {"past_index", F::kNumber, kRefused, "models keep nothing from batch to batch", "-1"},
    {"label_names", F::kText, kRefused, "the job knows its labels", "labels"},
    {"ignore_data_skip", F::kBool, kRefused, "a resumed run goes on with the next batch, at no cost", "false"},
    {"accelerator_config", F::kText, kRefused, "batches are those of the command line for each rank", "{}"},
    {"parallelism_config", F::kText, kRefused, "give --strategy", ""},
    {"label_smoothing_factor", F::kNumber, kRefused, "labels are not smoothed", "0"},
    {"optim_args", F::kText, kRefused, "give --adam_beta1, --adam_beta2, --adam_epsilon or --momentum", ""},
    {"optim_target_modules", F::kText, kRefused, "all parameters are trained by one optimizer", ""},
    {"adafactor", F::kBool, kRefused, "optimizers are AdamW, Adam and SGD: --optim", "false"},
    {"use_legacy_prediction_loop", F::kBool, kRefused, "there is one evaluation loop", "false"},
    {"mp_parameters", F::kText, kRefused, "that is SageMaker's; give --strategy", ""},
    {"auto_find_batch_size", F::kBool, kRefused, "what does not fit is said before the first step, with what would",
     "false"},
    {"torchdynamo", F::kText, kRefused, kNoCompiler, ""},
    {"torch_compile", F::kBool, kRefused, kNoCompiler, "false"},
    {"torch_compile_backend", F::kText, kRefused, kNoCompiler, ""},
    {"torch_compile_mode", F::kText, kRefused, kNoCompiler, ""},
    {"include_tokens_per_second", F::kBool, kRefused, kNoTokens, "false"},
    {"include_num_input_tokens_seen", F::kText, kRefused, kNoTokens, "no|false|False"},
    {"neftune_noise_alpha", F::kNumber, kRefused, "embeddings get no noise", ""},
    {"average_tokens_across_devices", F::kBool, kRefused, "the loss is always the mean over all ranks' tokens", "true"},
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
    Setting& setting = argument.form == F::kBool     ? schema.boolean(argument.name, &s.foreign_flags.emplace_back())
                       : argument.form == F::kNumber ? schema.real(argument.name, &s.foreign_numbers.emplace_back())
                                                     : schema.text(argument.name, &s.foreign_words.emplace_back());
    setting.hidden();
    if (argument.is_secret) setting.secret();
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
