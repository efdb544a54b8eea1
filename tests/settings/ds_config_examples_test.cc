// ds_config files that people have: those of the experiments, and files with the keys of the examples that DeepSpeed's
// and transformers' pages show.
#include <filesystem>

#include "settings/foreign_config.h"
#include "settings/test_load.h"

namespace tessera {
namespace {

using DsConfigExamples = DsConfigTest;

TEST_F(DsConfigExamples, OfTheExperimentsAreTaken) {
  struct Expected {
    const char *name, *strategy;
    bool optimizer, param, pinned;
  };
  const Expected files[] = {{"zero0", "zero0", false, false, false},
                            {"zero1", "zero1", false, false, false},
                            {"zero1_cpu_offload", "zero1", true, false, false},
                            {"zero1_cpu_offload_pinned_memory", "zero1", true, false, true},
                            {"zero2", "zero2", false, false, false},
                            {"zero2_cpu_offload", "zero2", true, false, false},
                            {"zero2_cpu_offload_pinned_memory", "zero2", true, false, true},
                            {"zero3", "zero3", false, false, false},
                            {"zero3_cpu_offload", "zero3", true, true, false},
                            {"zero3_cpu_offload_pinned_memory", "zero3", true, true, true},
                            {"code/zero1_cpu_offload", "zero1", true, false, true},
                            {"code/zero2", "zero2", false, false, false},
                            {"code/zero3_cpu_offload", "zero3", true, true, true}};
  const std::filesystem::path folder = std::filesystem::path(TESSERA_SOURCE_FOLDER) / "experiments" / "ds_configs";
  std::size_t num_files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    num_files += entry.path().extension() == ".json";
  EXPECT_EQ(num_files, std::size(files));
  num_ranks_ = 2;
  for (const Expected& expected : files) {
    const LoadedTrainSettings loaded =
        load({"--deepspeed", (folder / (std::string(expected.name) + ".json")).string(), "--fp16", "--lr=1e-4",
              "--per_device_train_batch_size=2", "--gradient_accumulation_steps=3", "--max_grad_norm=2"});
    const TrainSettings& s = loaded.settings;
    EXPECT_EQ(s.spread.strategy, expected.strategy) << expected.name;
    EXPECT_EQ(s.spread.offload_optimizer, expected.optimizer) << expected.name;
    EXPECT_EQ(s.spread.offload_parameters, expected.param) << expected.name;
    if (expected.optimizer) {
      EXPECT_EQ(s.spread.pin_memory, expected.pinned) << expected.name;
    }
    EXPECT_EQ(s.precision.compute, NumberType::kFloat16);  // all "auto": the command line's
    EXPECT_EQ(s.optimizer.learning_rate, 1e-4);
    EXPECT_EQ(s.loop.batch_size, 2);
    EXPECT_EQ(s.loop.accumulation, 3);
    EXPECT_EQ(s.optimizer.max_grad_norm, 2);
    EXPECT_EQ(s.precision.loss_scale.growth_interval, 1000);
  }
}

TEST_F(DsConfigExamples, OfDeepSpeedsFirstPageAreTaken) {
  EXPECT_EQ(with(R"({"train_batch_size": 8, "gradient_accumulation_steps": 1,
    "optimizer": {"type": "Adam", "params": {"lr": 0.00015}},
    "fp16": {"enabled": true}, "zero_optimization": true})",
                 {})
                .settings.spread.strategy,
            "zero1");
}

TEST_F(DsConfigExamples, OfDeepSpeedAreTaken) {
  // An image classifier with a scheduler, prints and no ZeRO.
  num_ranks_ = 1;
  const TrainSettings cifar = with(R"({"train_batch_size": 4, "steps_per_print": 2000,
    "optimizer": {"type": "Adam", "params": {"lr": 0.001, "betas": [0.8, 0.999], "eps": 1e-8, "weight_decay": 3e-7}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.001, "warmup_num_steps": 1000}},
    "wall_clock_breakdown": false})")
                                  .settings;
  EXPECT_EQ(cifar.spread.strategy, "zero0");
  EXPECT_EQ(cifar.loop.batch_size, 4);
  EXPECT_EQ(cifar.loop.accumulation, 1);
  EXPECT_EQ(cifar.schedule.kind, "WarmupLR");
  // ZeRO-3 with everything in host memory, prescale and the profiler off.
  const TrainSettings big = with(R"({"train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 3, "contiguous_gradients": true, "stage3_max_live_parameters": 1e9,
      "stage3_max_reuse_distance": 1e9, "stage3_prefetch_bucket_size": 1e7, "stage3_param_persistence_threshold": 1e5,
      "reduce_bucket_size": 1e7, "sub_group_size": 1e9,
      "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu", "pin_memory": true}},
    "prescale_gradients": false, "gradient_predivide_factor": 1.0, "sparse_gradients": false,
    "flops_profiler": {"enabled": false, "profile_step": 1}, "tensorboard": {"enabled": false}})")
                                .settings;
  EXPECT_TRUE(big.spread.offload_parameters && big.spread.offload_optimizer && big.spread.pin_memory);
}

TEST_F(DsConfigExamples, OfTransformersAreTaken) {
  const char* common = R"("fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000,
      "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000,
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": false)";
  const std::string two = std::string("{") + common + R"(,
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto",
                  "warmup_num_steps": "auto"}},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true},
      "allgather_partitions": true, "allgather_bucket_size": 2e8, "overlap_comm": true, "reduce_scatter": true,
      "reduce_bucket_size": 2e8, "contiguous_gradients": true}})";
  const TrainSettings s = with(two, {"--warmup_steps=7", "--fp16"}).settings;
  EXPECT_EQ(s.spread.strategy, "zero2");
  EXPECT_EQ(s.schedule.warmup_steps, 7);
  EXPECT_EQ(s.schedule.learning_rate, 5e-5);
  const std::string three = std::string("{") + common + R"(, "bf16": {"enabled": "auto"},
    "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto",
                  "warmup_num_steps": "auto", "total_num_steps": "auto"}},
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": true},
      "offload_param": {"device": "cpu", "pin_memory": true}, "overlap_comm": true, "contiguous_gradients": true,
      "sub_group_size": 1e9, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
      "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
      "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": true}})";
  const TrainSettings t = with(three, {"--bf16", "--warmup_ratio=0.1"}).settings;
  EXPECT_EQ(t.precision.compute, NumberType::kBFloat16);
  EXPECT_EQ(t.schedule.kind, "WarmupDecayLR");
  EXPECT_EQ(t.schedule.warmup_ratio, 0.1);
  EXPECT_EQ(t.schedule.total_steps, 0);
  EXPECT_TRUE(t.spread.forward_prefetch);
  EXPECT_FALSE(with(three, {"--bf16", "--warmup_ratio=0.1", "--no_forward_prefetch"}).settings.spread.forward_prefetch);
  // All names of AdamW are one; SGD is another.
  EXPECT_EQ(with(two, {"--fp16", "--optim=adamw_torch"}).settings.optimizer.optim, "adamw_torch");
  EXPECT_NE(refusal_with(two, {"--fp16", "--optim=sgd"}).find("optim is sgd (command line) and adamw_torch_fused"),
            std::string::npos);
  // The file for inference with one more key, and amp turned off.
  EXPECT_EQ(with(R"({"fp16": {"enabled": "auto"}, "amp": {"enabled": "auto", "opt_level": "auto"},
    "zero_optimization": {"stage": 0}, "zero_allow_untested_optimizer": true})")
                .settings.spread.strategy,
            "zero0");
}

}  // namespace
}  // namespace tessera
