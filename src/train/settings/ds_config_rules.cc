// What becomes of each key of a ds_config.json. Rows with kReader are completed in ds_config.cc.
#include "train/settings/ds_config.h"

namespace tessera {

namespace {

using Rules = std::vector<KeyRule>;
using F = KeyRule::Form;
using T = KeyRule::Fate;

constexpr bool kAuto = true;
constexpr const char* kUnits = "Tessera moves whole blocks of the model, not buckets";
constexpr const char* kTwoUnits = "at most two blocks are whole at a time";
constexpr const char* kNvme = "only nvme needs it";
constexpr const char* kOwnWay = "Tessera has its own way";

const Rules kOutermost = {
    {"", "train_batch_size", F::kCount, T::kSetting, "train_batch_size", kAuto},
    {"", "train_micro_batch_size_per_gpu", F::kCount, T::kSetting, "per_device_train_batch_size", kAuto},
    {"", "gradient_accumulation_steps", F::kCount, T::kSetting, "gradient_accumulation_steps", kAuto},
    {"", "gradient_clipping", F::kNumber, T::kSetting, "max_grad_norm", kAuto},
    {"", "dataloader_drop_last", F::kBool, T::kSetting, "dataloader_drop_last"},
    {"", "communication_data_type", F::kText, T::kReader},
    {"", "optimizer", F::kSection, T::kReader},
    {"", "scheduler", F::kSection, T::kReader},
    {"", "fp16", F::kSection, T::kReader},
    {"", "bf16", F::kSection, T::kReader},
    {"", "bfloat16", F::kSection, T::kReader},
    {"", "zero_optimization", F::kSectionOrBool, T::kReader},
    {"", "activation_checkpointing", F::kSection, T::kReader},
    {"", "data_types", F::kSection, T::kReader},
    {"", "steps_per_print", F::kNumber, T::kNoEffect, "--logging_steps says when a line is printed"},
    {"", "wall_clock_breakdown", F::kBool, T::kNoEffect, "the run's record has its times"},
    {"", "memory_breakdown", F::kBool, T::kNoEffect, "the memory plan and the summary have it"},
    {"", "dump_state", F::kBool, T::kNoEffect, "--print_config shows the settings"},
    {"", "zero_allow_untested_optimizer", F::kBool, T::kNoEffect, "every optimizer works with every strategy"},
    {"", "zero_force_ds_cpu_optimizer", F::kBool, T::kNoEffect, "the optimizer in host memory is always Tessera's"},
    {"", "seq_parallel_communication_data_type", F::kText, T::kNoEffect, "sequences are not split over ranks"},
    {"", "use_data_before_expert_parallelism", F::kBool, T::kNoEffect, "there are no experts"},
    {"", "managed_gradient_accumulation", F::kBool, T::kNoEffect, kOwnWay},
    {"", "checkpoint", F::kSection, T::kNoEffect, "checkpoints are Tessera's own"},
    {"", "aio", F::kSection, T::kNoEffect, kNvme},
    {"", "prescale_gradients", F::kBool, T::kOnly, "gradients are summed, then divided by the tokens", false, "false"},
    {"", "gradient_predivide_factor", F::kNumber, T::kOnly, "gradients are summed, then divided by the tokens", false,
     "1"},
    {"", "gradient_allreduce_op", F::kText, T::kOnly, "the loss is the mean over all ranks", false, "\"mean\""},
    {"", "sparse_gradients", F::kBool, T::kOnly, "gradients are dense", false, "false"},
    {"", "disable_allgather", F::kBool, T::kOnly, "leave it out", false, "false"},
    {"", "amp", F::kSection, T::kOff, "use fp16 or bf16 instead of amp"},
    {"", "torch_autocast", F::kSection, T::kOff, "use fp16 or bf16 instead of autocast"},
    {"", "flops_profiler", F::kSection, T::kOff, "the run's record has its speed"},
    {"", "tensorboard", F::kSection, T::kOff, "give --report_to tensorboard instead"},
    {"", "wandb", F::kSection, T::kOff, "give --report_to wandb instead"},
    {"", "csv_monitor", F::kSection, T::kOff, "the metrics are always written as CSV, too"},
    {"", "comet", F::kSection, T::kOff, "give --report_to tensorboard or wandb"},
    {"", "comms_logger", F::kSection, T::kOff, "TESSERA_LOG=debug and `tessera comm-test` show collectives"},
    {"", "autotuning", F::kSection, T::kOff, "sizes are planned, not searched"},
    {"", "elasticity", F::kSection, T::kOff, "a run resumes on any number of ranks by itself"},
    {"", "compression_training", F::kSection, T::kOff, "weights are not compressed"},
    {"", "data_efficiency", F::kSection, T::kOff, "rows come in the sampler's order"},
    {"", "curriculum_learning", F::kSection, T::kOff, "rows come in the sampler's order"},
    {"", "hybrid_engine", F::kSection, T::kOff, "generation uses the training's own model"},
    {"", "compile", F::kAny, T::kOff, "there is nothing to compile at run time"},
    {"", "graph_harvesting", F::kBool, T::kOff, "leave it out"},
    {"", "eigenvalue", F::kSection, T::kOff, "leave it out"},
    {"", "progressive_layer_drop", F::kSection, T::kOff, "all layers are trained"},
    {"", "quantize_training", F::kSection, T::kOff, "weights are not quantised"},
    {"", "sparse_attention", F::kAny, T::kOff, "attention is whole"},
    {"", "tensor_parallel", F::kSection, T::kOff, "models are split by blocks, not by matrices"},
    {"", "expert_parallel", F::kSection, T::kOff, "there are no experts"},
    {"", "pipeline", F::kAny, T::kOff, "there are no pipeline stages"},
    {"", "nebula", F::kSection, T::kOff, "checkpoints are Tessera's own"},
    {"data_types", "grad_accum_dtype", F::kText, T::kOnly, "gradients accumulate in the strategy's own type", false,
     "\"\""},
};

const Rules kTraining = {
    {"optimizer", "type", F::kText, T::kReader},
    {"optimizer", "params", F::kSection, T::kReader},
    {"optimizer", "legacy_fusion", F::kBool, T::kNoEffect, "the update is always fused"},
    {"optimizer.params", "lr", F::kNumber, T::kSetting, "learning_rate", kAuto},
    {"optimizer.params", "betas", F::kAny, T::kReader, "", kAuto},
    {"optimizer.params", "eps", F::kNumber, T::kSetting, "adam_epsilon", kAuto},
    {"optimizer.params", "weight_decay", F::kNumber, T::kSetting, "weight_decay", kAuto},
    {"optimizer.params", "momentum", F::kNumber, T::kSetting, "momentum"},
    {"optimizer.params", "nesterov", F::kBool, T::kSetting, "nesterov"},
    {"optimizer.params", "adam_w_mode", F::kBool, T::kReader},
    {"optimizer.params", "torch_adam", F::kBool, T::kNoEffect, "the update is always Tessera's, fused"},
    {"optimizer.params", "fused", F::kBool, T::kNoEffect, "the update is always fused"},
    {"optimizer.params", "bias_correction", F::kBool, T::kOnly, "moments are always corrected", false, "true"},
    {"optimizer.params", "amsgrad", F::kBool, T::kOnly, "there is no AMSGrad", false, "false"},
    {"optimizer.params", "dampening", F::kNumber, T::kOnly, "momentum is not dampened", false, "0"},
    {"optimizer.params", "max_grad_norm", F::kNumber, T::kOnly, "write gradient_clipping, outside of the optimizer",
     false, "0"},
    {"scheduler", "type", F::kText, T::kReader},
    {"scheduler", "params", F::kSection, T::kReader},
    {"scheduler.params", "warmup_min_lr", F::kNumber, T::kSetting, "warmup_min_lr", kAuto},
    {"scheduler.params", "warmup_max_lr", F::kNumber, T::kSetting, "learning_rate", kAuto},
    {"scheduler.params", "warmup_num_steps", F::kCount, T::kSetting, "warmup_steps", kAuto},
    {"scheduler.params", "total_num_steps", F::kCount, T::kReader, "", kAuto},
    {"scheduler.params", "warmup_type", F::kText, T::kSetting, "warmup_type"},
    {"scheduler.params", "last_batch_iteration", F::kNumber, T::kOnly, "a resumed run knows its step", false, "-1"},
    {"fp16", "enabled", F::kBool, T::kSetting, "fp16", kAuto},
    {"fp16", "loss_scale", F::kNumber, T::kSetting, "loss_scale"},
    {"fp16", "initial_scale_power", F::kCount, T::kSetting, "initial_scale_power"},
    {"fp16", "loss_scale_window", F::kCount, T::kSetting, "loss_scale_window"},
    {"fp16", "hysteresis", F::kCount, T::kSetting, "hysteresis"},
    {"fp16", "consecutive_hysteresis", F::kBool, T::kSetting, "consecutive_hysteresis"},
    {"fp16", "min_loss_scale", F::kNumber, T::kSetting, "min_loss_scale"},
    {"fp16", "auto_cast", F::kBool, T::kNoEffect, "inputs are token ids, or converted anyway"},
    {"fp16", "fp16_master_weights_and_grads", F::kBool, T::kOnly, "master values are float32", false, "false"},
    {"bf16", "enabled", F::kBool, T::kSetting, "bf16", kAuto},
    {"bf16", "immediate_grad_update", F::kBool, T::kNoEffect, kOwnWay},
    {"bf16", "check_grad_overflow", F::kBool, T::kNoEffect, "an update that is not finite is always skipped"},
    {"bf16", "check_overflow", F::kBool, T::kNoEffect, "an update that is not finite is always skipped"},
    {"bf16", "bf16_master_weights_and_grads", F::kBool, T::kOnly, "master values are float32", false, "false"},
    {"bf16", "bf16_optimizer_states", F::kBool, T::kOnly, "moments are float32", false, "false"},
    {"bfloat16", "enabled", F::kBool, T::kSetting, "bf16", kAuto},
    {"activation_checkpointing", "partition_activations", F::kBool, T::kNoEffect,
     "--gradient_checkpointing is the switch"},
    {"activation_checkpointing", "cpu_checkpointing", F::kBool, T::kNoEffect, "--gradient_checkpointing is the switch"},
    {"activation_checkpointing", "contiguous_memory_optimization", F::kBool, T::kNoEffect, kOwnWay},
    {"activation_checkpointing", "number_checkpoints", F::kAny, T::kNoEffect, "one a block"},
    {"activation_checkpointing", "synchronize_checkpoint_boundary", F::kBool, T::kNoEffect, kOwnWay},
    {"activation_checkpointing", "profile", F::kBool, T::kNoEffect, kOwnWay},
};

const Rules kZero = {
    {"zero_optimization", "stage", F::kCount, T::kReader},
    {"zero_optimization", "offload_optimizer", F::kSection, T::kReader},
    {"zero_optimization", "offload_param", F::kSection, T::kReader},
    {"zero_optimization", "cpu_offload", F::kBool, T::kSetting, "offload_optimizer"},
    {"zero_optimization", "cpu_offload_param", F::kBool, T::kSetting, "offload_param"},
    {"zero_optimization", "cpu_offload_params", F::kBool, T::kSetting, "offload_param"},
    {"zero_optimization", "cpu_offload_use_pin_memory", F::kBool, T::kSetting, "pin_memory"},
    {"zero_optimization", "overlap_comm", F::kBool, T::kNoEffect, "communication always overlaps with compute"},
    {"zero_optimization", "contiguous_gradients", F::kBool, T::kNoEffect, "gradients are always contiguous"},
    {"zero_optimization", "reduce_scatter", F::kBool, T::kNoEffect, "gradients are always reduced by reduce-scatter"},
    {"zero_optimization", "allgather_partitions", F::kBool, T::kNoEffect, "parameters are always gathered"},
    {"zero_optimization", "reduce_bucket_size", F::kCount, T::kNoEffect, kUnits, kAuto},
    {"zero_optimization", "allgather_bucket_size", F::kCount, T::kNoEffect, kUnits},
    {"zero_optimization", "sub_group_size", F::kCount, T::kNoEffect, "the update goes block by block"},
    {"zero_optimization", "stage3_prefetch_bucket_size", F::kCount, T::kReader, "", kAuto},
    {"zero_optimization", "stage3_param_persistence_threshold", F::kCount, T::kNoEffect, kUnits, kAuto},
    {"zero_optimization", "stage3_model_persistence_threshold", F::kCount, T::kNoEffect, kUnits},
    {"zero_optimization", "stage3_max_live_parameters", F::kCount, T::kNoEffect, kTwoUnits},
    {"zero_optimization", "stage3_max_reuse_distance", F::kCount, T::kNoEffect, kTwoUnits},
    {"zero_optimization", "stage3_gather_16bit_weights_on_model_save", F::kBool, T::kNoEffect,
     "the model's folder is always whole"},
    {"zero_optimization", "stage3_gather_fp16_weights_on_model_save", F::kBool, T::kNoEffect,
     "the model's folder is always whole"},
    {"zero_optimization", "stage3_module_granularity_threshold", F::kCount, T::kNoEffect, kUnits},
    {"zero_optimization", "stage3_use_all_reduce_for_fetch_params", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "stage3_allgather_sequential", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "use_multi_rank_bucket_allreduce", F::kBool, T::kNoEffect, kUnits},
    {"zero_optimization", "round_robin_gradients", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "load_from_fp32_weights", F::kBool, T::kNoEffect, "checkpoints keep float32 master values"},
    {"zero_optimization", "elastic_checkpoint", F::kBool, T::kNoEffect, "checkpoints fit any number of ranks"},
    {"zero_optimization", "legacy_stage1", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "ignore_unused_parameters", F::kBool, T::kNoEffect,
     "unused parameters get gradients of zero"},
    {"zero_optimization", "grad_hooks", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "memory_efficient_linear", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "override_module_apply", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "pipeline_loading_checkpoint", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "log_trace_cache_warnings", F::kBool, T::kNoEffect, kOwnWay},
    {"zero_optimization", "enable_sanity_checks", F::kBool, T::kNoEffect, "ranks are always compared"},
    {"zero_optimization", "save_muon_momentum_buffer_in_memory", F::kBool, T::kNoEffect, "there is no Muon"},
    {"zero_optimization", "zero_hpz_partition_size", F::kCount, T::kOnly, "take --strategy hybrid_shard", false, "1"},
    {"zero_optimization", "mics_shard_size", F::kNumber, T::kOnly, "take --strategy hybrid_shard", false, "-1"},
    {"zero_optimization", "mics_hierarchical_params_gather", F::kBool, T::kOnly, "take --strategy hybrid_shard", false,
     "false"},
    {"zero_optimization", "zero_quantized_weights", F::kBool, T::kOnly, "nothing is quantised", false, "false"},
    {"zero_optimization", "zero_quantized_nontrainable_weights", F::kBool, T::kOnly, "nothing is quantised", false,
     "false"},
    {"zero_optimization", "zero_quantized_gradients", F::kBool, T::kOnly, "nothing is quantised", false, "false"},
    {"zero_optimization", "zeropp_loco_param", F::kSection, T::kOff, "nothing is quantised"},
    {"zero_optimization", "zenflow", F::kSection, T::kOff, "offloaded updates run beside backward by themselves"},
    {"zero_optimization", "leaf_module", F::kSection, T::kOff, "give --wrap_classes instead"},
};

const Rules kOffload = {
    {"zero_optimization.offload_optimizer", "device", F::kText, T::kReader},
    {"zero_optimization.offload_optimizer", "pin_memory", F::kBool, T::kReader},
    {"zero_optimization.offload_optimizer", "buffer_count", F::kCount, T::kNoEffect, kNvme},
    {"zero_optimization.offload_optimizer", "fast_init", F::kBool, T::kNoEffect, kNvme},
    {"zero_optimization.offload_optimizer", "ratio", F::kNumber, T::kOnly,
     "all of the optimizer is offloaded, or nothing", false, "1"},
    {"zero_optimization.offload_optimizer", "nvme_path", F::kText, T::kNoEffect, kNvme},
    {"zero_optimization.offload_optimizer", "pipeline", F::kBool, T::kNoEffect, kNvme},
    {"zero_optimization.offload_optimizer", "pipeline_read", F::kBool, T::kNoEffect, kNvme},
    {"zero_optimization.offload_optimizer", "pipeline_write", F::kBool, T::kNoEffect, kNvme},
    {"zero_optimization.offload_optimizer", "super_offload", F::kBool, T::kOnly, "leave it out", false, "false"},
    {"zero_optimization.offload_optimizer", "cpuadam_cores_perc", F::kNumber, T::kNoEffect, "OMP_NUM_THREADS says it"},
    {"zero_optimization.offload_param", "device", F::kText, T::kReader},
    {"zero_optimization.offload_param", "pin_memory", F::kBool, T::kReader},
    {"zero_optimization.offload_param", "buffer_count", F::kCount, T::kNoEffect, kNvme},
    {"zero_optimization.offload_param", "buffer_size", F::kCount, T::kNoEffect, kNvme},
    {"zero_optimization.offload_param", "max_in_cpu", F::kCount, T::kNoEffect, kNvme},
    {"zero_optimization.offload_param", "nvme_path", F::kText, T::kNoEffect, kNvme},
};

}  // namespace

const std::vector<KeyRule>& ds_config_rules() {
  static const Rules all = [] {
    Rules rules;
    for (const Rules* part : {&kOutermost, &kTraining, &kZero, &kOffload}) {
      rules.insert(rules.end(), part->begin(), part->end());
    }
    return rules;
  }();
  return all;
}

}  // namespace tessera
