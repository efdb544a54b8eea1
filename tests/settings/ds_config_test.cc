#include <fmt/format.h>

#include "settings/foreign_config.h"
#include "settings/test_load.h"

namespace tessera {
namespace {

using DsConfig = DsConfigTest;

TEST_F(DsConfig, EveryKeyOfTheContractIsTaken) {
  num_ranks_ = 2;
  const LoadedTrainSettings loaded = with(R"({
    "train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8,
    "gradient_clipping": 0.5,
    "optimizer": {"type": "Adam", "params": {"lr": 3e-5, "betas": [0.8, 0.99], "eps": 1e-7, "weight_decay": 3e-7}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 1e-6, "warmup_max_lr": 3e-5,
                  "warmup_num_steps": 10, "total_num_steps": 50}},
    "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 12, "loss_scale_window": 500, "hysteresis": 3,
             "min_loss_scale": 2},
    "bf16": {"enabled": false},
    "zero_optimization": {"stage": 3, "overlap_comm": true, "contiguous_gradients": true, "reduce_scatter": true,
      "reduce_bucket_size": 5e8, "allgather_bucket_size": 5e8, "stage3_prefetch_bucket_size": 5e7,
      "stage3_param_persistence_threshold": 1e5, "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9,
      "stage3_gather_16bit_weights_on_model_save": true, "sub_group_size": 1e9,
      "offload_optimizer": {"device": "cpu", "pin_memory": true, "buffer_count": 4, "fast_init": false, "ratio": 1.0},
      "offload_param": {"device": "cpu", "pin_memory": true, "buffer_count": 5, "buffer_size": 1e8, "max_in_cpu": 1e9}},
    "activation_checkpointing": {"partition_activations": false, "cpu_checkpointing": false},
    "wall_clock_breakdown": false, "steps_per_print": 10})",
                                          {"--max_steps=50"});
  const TrainSettings& s = loaded.settings;
  EXPECT_EQ(s.loop.batch_size, 2);
  EXPECT_EQ(s.loop.accumulation, 8);
  EXPECT_EQ(s.optimizer.max_grad_norm, 0.5);
  EXPECT_EQ(optimizer_of(s.optimizer.optim).name, "adamw");  // DeepSpeed's Adam decays as AdamW does
  EXPECT_EQ(s.optimizer.learning_rate, 3e-5);
  EXPECT_EQ(s.optimizer.numbers.beta1, 0.8);
  EXPECT_EQ(s.optimizer.numbers.beta2, 0.99);
  EXPECT_EQ(s.optimizer.numbers.epsilon, 1e-7);
  EXPECT_EQ(s.optimizer.numbers.weight_decay, 3e-7);
  EXPECT_EQ(s.schedule.kind, "WarmupDecayLR");
  EXPECT_EQ(s.schedule.warmup_min_lr, 1e-6);
  EXPECT_EQ(s.schedule.warmup_steps, 10);
  EXPECT_EQ(s.schedule.total_steps, 50);
  EXPECT_EQ(s.schedule.warmup_shape, WarmupShape::kLog);
  EXPECT_EQ(s.precision.compute, NumberType::kFloat16);
  EXPECT_EQ(s.precision.loss_scale.rule, LossScaleOptions::Rule::kDeepSpeed);
  EXPECT_EQ(s.precision.loss_scale.initial, 4096);
  EXPECT_EQ(s.precision.loss_scale.growth_interval, 500);
  EXPECT_EQ(s.precision.loss_scale.hysteresis, 3);
  EXPECT_EQ(s.precision.loss_scale.minimum, 2);
  EXPECT_EQ(s.spread.strategy, "zero3");
  EXPECT_TRUE(s.spread.offload_optimizer);
  EXPECT_TRUE(s.spread.offload_parameters);
  EXPECT_TRUE(s.spread.pin_memory);
  EXPECT_TRUE(s.spread.forward_prefetch);
  const std::string said = notes(loaded);
  EXPECT_EQ(said.find("ds.json: accepted, but without effect here: "), 0u) << said;
  for (const char* key : {"overlap_comm", "reduce_bucket_size", "buffer_count", "steps_per_print", "sub_group_size"}) {
    EXPECT_NE(said.find(key), std::string::npos) << key;
  }
  EXPECT_EQ(said.find("hysteresis"), std::string::npos);
}

TEST_F(DsConfig, AKindThatThereIsNotIsNamedBeforeItsParameters) {
  EXPECT_NE(refusal_with(R"({"scheduler": {"type": "OneCycle", "params": {"cycle_first_step_size": 1000}}})")
                .find("scheduler.type: expected WarmupLR, WarmupDecayLR, found \"OneCycle\""),
            std::string::npos);
  EXPECT_NE(refusal_with(R"({"optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 400}}})")
                .find("optimizer.type: expected Adam, AdamW, SGD, Lion, found \"OneBitAdam\""),
            std::string::npos);
}

TEST_F(DsConfig, AnUnknownKeyIsRefusedByLineAndColumnWithTheRightOne) {
  EXPECT_EQ(refusal_with("{\n  \"zero_optimization\": {\n    \"stage\": 2,\n    \"overlap_com\": true\n  }\n}"),
            "ds.json:4:5: zero_optimization.overlap_com: unknown key; did you mean overlap_comm?");
  EXPECT_EQ(refusal_with(R"({"train_batchsize": 3})"),
            "ds.json:1:2: train_batchsize: unknown key; did you mean train_batch_size?");
  EXPECT_EQ(refusal_with(R"({"overlap_comm": true})"),
            "ds.json:1:2: overlap_comm: unknown key; it belongs in zero_optimization");
  EXPECT_EQ(refusal_with(R"({"fp16": {"steps_per_print": 3}})"),
            "ds.json:1:11: fp16.steps_per_print: unknown key; it belongs at the top level");
  EXPECT_EQ(refusal_with(R"({"zzzzzzzz": 3})"), "ds.json:1:2: zzzzzzzz: unknown key");
  EXPECT_EQ(refusal_with(R"({"fp16.enabled": true})"),
            "ds.json:1:2: fp16.enabled: unknown key");  // no key has a dot in it
}

TEST_F(DsConfig, AValueOfAnotherFormIsRefusedByLineAndColumn) {
  EXPECT_EQ(refusal_with(R"({"train_batch_size": "many"})"),
            "ds.json:1:22: train_batch_size: expected a whole number of at least 1 or \"auto\", found \"many\"");
  EXPECT_EQ(refusal_with(R"({"gradient_accumulation_steps": 0})"),
            "ds.json:1:33: gradient_accumulation_steps: expected a whole number of at least 1 or \"auto\", found 0");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 4}})"),
            "ds.json:1:33: zero_optimization.stage: expected 0, 1, 2 or 3, found 4");
  EXPECT_EQ(
      refusal_with(R"({"zero_optimization": {"stage": "auto"}})"),
      "ds.json:1:33: zero_optimization.stage: expected a whole number of at least 0; \"auto\" has no meaning here");
  EXPECT_EQ(refusal_with(R"({"fp16": true})"), "ds.json:1:10: fp16: expected an object, found true");
  EXPECT_EQ(refusal_with(R"({"optimizer": {"type": "Lamb"}})"),
            "ds.json:1:24: optimizer.type: expected Adam, AdamW, SGD, Lion, found \"Lamb\"");
  EXPECT_EQ(refusal_with(R"({"optimizer": {"type": "Adam", "params": {"betas": [1]}}})"),
            "ds.json:1:52: optimizer.params.betas: expected two numbers, [0.9, 0.999], or \"auto\"");
  EXPECT_EQ(refusal_with(R"({"optimizer": {"type": "Adam", "params": {"lr": -1}}})"),
            "ds.json:1:49: optimizer.params.lr: expected a number of at least 0, found -1");
  EXPECT_EQ(
      refusal_with(R"({"scheduler": {"type": "OneCycle"}})"),
      "ds.json:1:24: scheduler.type: expected WarmupLR, WarmupDecayLR, found \"OneCycle\"; leave the scheduler out and "
      "give --lr_scheduler_type for others");
  EXPECT_EQ(refusal_with(R"({"scheduler": {"type": "WarmupDecayLR"}})"),
            "ds.json:1:2: scheduler: WarmupDecayLR needs params.total_num_steps: a number or \"auto\"");
  EXPECT_EQ(refusal_with("[1]"), "ds.json: expected a JSON object of settings");
  EXPECT_EQ(refusal_with("{\"fp16\": {,}}"), "ds.json:1:11: expected a key in double quotes or '}', found ','");
}

// 0 is how the setting says 'unset', which a file says by leaving the key out.
TEST_F(DsConfig, ABatchOfNoSamplesIsRefused) {
  for (const char* key : {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"}) {
    EXPECT_NE(refusal_with(fmt::format(R"({{"{}": 0}})", key))
                  .find(fmt::format("{}: expected a whole number of at least 1 or \"auto\", found 0", key)),
              std::string::npos)
        << key;
  }
}

TEST_F(DsConfig, AWordThatIsNoBooleanIsRefusedWhereverASwitchStands) {
  EXPECT_EQ(refusal_with(R"({"fp16": {"enabled": "yes"}})"),
            "ds.json:1:22: fp16.enabled: expected true or false or \"auto\", found \"yes\"");
  // A section that Tessera does not have: "yes" must not count as off.
  for (const char* word : {"\"yes\"", "\"on\"", "1", "\"1\""}) {
    EXPECT_EQ(refusal_with(fmt::format(R"({{"flops_profiler": {{"enabled": {}}}}})", word)),
              fmt::format("ds.json:1:32: flops_profiler.enabled: expected true or false, found {}", word));
  }
  EXPECT_EQ(refusal_with(R"({"flops_profiler": {"enabled": [true]}})"),
            "ds.json:1:32: flops_profiler.enabled: expected true or false, found an array");
  EXPECT_EQ(refusal_with(R"({"flops_profiler": {"enabled": "True"}})"),
            "ds.json:1:2: flops_profiler: not supported by Tessera: the run's record has its speed");
  EXPECT_EQ(refusal_with(R"({"flops_profiler": {"enabled": "False"}, "fp16": {"enabled": "true"}})"), "accepted");
}

TEST_F(DsConfig, WhatThereIsNotIsRefusedWithAdvice) {
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})"),
            "ds.json:1:64: zero_optimization.offload_param.device: expected none, cpu, found \"nvme\": Tessera does "
            "not offload to disks; use cpu");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})"),
            "ds.json:1:53: zero_optimization.offload_param: needs stage 3, found stage 2");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})"),
            "ds.json:1:45: zero_optimization.offload_optimizer: needs stage 1, 2 or 3, found stage 0");
  EXPECT_EQ(
      refusal_with(R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.3}}})"),
      "ds.json:1:84: zero_optimization.offload_optimizer.ratio: 0.3 is not possible here: use --gpu_memory, which "
      "keeps as much on the GPU as fits");
  EXPECT_EQ(refusal_with(R"({"amp": {"enabled": true}})"),
            "ds.json:1:2: amp: not supported by Tessera: use fp16 or bf16 instead of amp");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 3, "zero_quantized_weights": true}})").substr(0, 62),
            "ds.json:1:62: zero_optimization.zero_quantized_weights: true i");
}

TEST_F(DsConfig, ACommandLineThatDiffersIsRefusedWithBoth) {
  EXPECT_EQ(
      refusal_with(R"({"train_micro_batch_size_per_gpu": 4})", {"--per_device_train_batch_size", "8"}),
      "per_device_train_batch_size is 8 (command line) and 4 (ds.json:1:36, train_micro_batch_size_per_gpu): leave it "
      "out of the command line, or write \"auto\" or the same in the file");
  EXPECT_EQ(refusal_with(R"({"fp16": {"enabled": false}})", {"--fp16"}).substr(0, 62),
            "fp16 is true (command line) and false (ds.json:1:22, fp16.enab");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 3}})", {"--strategy=full_shard"}).substr(0, 83),
            "strategy is full_shard (command line) and zero3 (ds.json:1:33, zero_optimization.st");
  EXPECT_EQ(refusal_with(R"({"optimizer": {"type": "AdamW", "params": {"lr": 5e-5}}})", {"--lr=0.00005"}), "accepted");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 3}})", {"--strategy=zero3"}), "accepted");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 2}})", {"--offload_optimizer"}),
            "accepted");  // not in the file
  EXPECT_EQ(refusal_with(R"({"fp16": {"enabled": true}})", {"--hysteresis=5"}),
            "accepted");  // only DeepSpeed's default
  // A JSON file overrides the environment.
  environment_ = {{"BATCH_SIZE", "8"}};
  EXPECT_EQ(with(R"({"train_micro_batch_size_per_gpu": 4})").settings.loop.batch_size, 4);
}

TEST_F(DsConfig, TwoKeysOfOneSettingMustAgree) {
  EXPECT_EQ(refusal_with(R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 2e-3}}})"),
            "learning_rate is 0.001 (ds.json: optimizer.params.lr) and 0.002 (ds.json:2:67, "
            "scheduler.params.warmup_max_lr): both mean the same setting; give one value");
  EXPECT_EQ(refusal_with(R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": true},
    "offload_optimizer": {"device": "cpu", "pin_memory": false}}})")
                .substr(0, 62),
            "pin_memory is false (ds.json: zero_optimization.offload_optimi");
}

TEST_F(DsConfig, TheTotalOfSamplesIsTheProductOrRefusedWithTheNumbers) {
  num_ranks_ = 2;
  EXPECT_EQ(
      refusal_with(
          R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4})"),
      "train_batch_size=64 (ds.json: train_batch_size) is not per_device_train_batch_size=4 (ds.json: "
      "train_micro_batch_size_per_gpu) x gradient_accumulation_steps=4 (ds.json: gradient_accumulation_steps) x 2 "
      "ranks, which makes 32");
  EXPECT_EQ(refusal_with(
                R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4})"),
            "accepted");
  // What is not given follows from the rest, as in DeepSpeed.
  const LoadedTrainSettings steps = with(R"({"train_batch_size": 24, "train_micro_batch_size_per_gpu": 4})");
  EXPECT_EQ(steps.settings.loop.accumulation, 3);
  EXPECT_EQ(origin(steps, "gradient_accumulation_steps"), "follows from train_batch_size");
  EXPECT_EQ(with(R"({"train_batch_size": 24, "gradient_accumulation_steps": 4})").settings.loop.batch_size, 3);
  // The job's own 4 x 4 where it fits, then its batch size alone, then an accumulation of 1.
  for (const char* file : {R"({"train_batch_size": 32})",
                           R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": "auto",
                               "gradient_accumulation_steps": "auto"})"}) {
    const LoadedTrainSettings own = with(file);
    EXPECT_EQ(own.settings.loop.batch_size, 4);
    EXPECT_EQ(own.settings.loop.accumulation, 4);
    EXPECT_EQ(notes(own), "");
  }
  const LoadedTrainSettings alone = with(R"({"train_batch_size": 24})");
  EXPECT_EQ(alone.settings.loop.batch_size, 4);
  EXPECT_EQ(alone.settings.loop.accumulation, 3);
  EXPECT_EQ(notes(alone),
            "train_batch_size=24 (ds.json: train_batch_size) on 2 ranks: batch size x accumulation is 4 x 3 instead of "
            "4 x 4\n");
  const LoadedTrainSettings other = with(R"({"train_batch_size": 20})");
  EXPECT_EQ(other.settings.loop.batch_size, 10);
  EXPECT_EQ(other.settings.loop.accumulation, 1);
  EXPECT_EQ(refusal_with(R"({"train_batch_size": 25})").substr(0, 55),
            "train_batch_size=25 (ds.json: train_batch_size) is not ");
  EXPECT_EQ(refusal_with(R"({"train_batch_size": "auto"})", {"--per_device_train_batch_size=4"}), "accepted");
  num_ranks_ = std::nullopt;  // not known yet: nothing to compare it with
  EXPECT_EQ(refusal_with(R"({"train_batch_size": 25})"), "accepted");
}

TEST_F(DsConfig, PlainAdamIsAskedForByItsOwnKey) {
  EXPECT_EQ(with(R"({"optimizer": {"type": "adam", "params": {"adam_w_mode": false}}})").settings.optimizer.optim,
            "adam");
  const TrainSettings sgd = with(R"({"optimizer": {"type": "SGD", "params": {"lr": 0.1, "momentum": 0.9}}})").settings;
  EXPECT_EQ(optimizer_of(sgd.optimizer.optim).name, "sgd");
  EXPECT_EQ(sgd.optimizer.numbers.momentum, 0.9);
}

TEST_F(DsConfig, NoPrefetchSizeMeansNoPrefetch) {
  const TrainSettings s = with(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0}})").settings;
  EXPECT_FALSE(s.spread.forward_prefetch);
  EXPECT_EQ(s.spread.backward_prefetch, BackwardPrefetch::kNone);
}

TEST_F(DsConfig, TheFileMayBeTheArgumentItselfAsInTransformers) {
  EXPECT_EQ(load({"--deepspeed", R"({"zero_optimization": {"stage": 1}})"}).settings.spread.strategy, "zero1");
  EXPECT_EQ(refusal({"--deepspeed", R"({"stage": 1})"}),
            "--deepspeed:1:2: stage: unknown key; it belongs in zero_optimization");
}

TEST_F(DsConfig, AnOldOffloadKeyIsTheNewOne) {
  const TrainSettings s = with(R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})").settings;
  EXPECT_TRUE(s.spread.offload_optimizer);
}

TEST_F(DsConfig, AFixedLossScaleIsFixed) {
  const TrainSettings s = with(R"({"fp16": {"enabled": true, "loss_scale": 128}})").settings;
  EXPECT_EQ(s.precision.loss_scale.rule, LossScaleOptions::Rule::kFixed);
  EXPECT_EQ(s.precision.loss_scale.initial, 128);
  EXPECT_EQ(load({"--fp16"}).settings.precision.loss_scale.rule, LossScaleOptions::Rule::kTorch);
  EXPECT_EQ(load({"--fp16"}).settings.precision.loss_scale.growth_interval, 2000);
  EXPECT_EQ(load({"--fp16"}).settings.precision.loss_scale.initial, 65536);
}

// Each rule names a setting that every job has, or gives a reason.
TEST_F(DsConfig, EveryRuleLeadsSomewhere) {
  for (const JobTraits* job : job_traits()) {
    testing::internal::CaptureStdout();
    const LoadedTrainSettings loaded = load_as_is({job->name, "--print_config"});
    testing::internal::GetCapturedStdout();
    for (const KeyRule& rule : ds_config_rules()) {
      if (rule.fate == KeyRule::Fate::kSetting) {
        EXPECT_NO_THROW(loaded.schema->at(rule.what)) << rule.path;
      }
      if (rule.fate != KeyRule::Fate::kReader) {
        EXPECT_NE(std::string(rule.what), "") << rule.path;
      }
    }
  }
}

TEST_F(DsConfig, ASecondCopyWithinTheNodeIsAStrategyOfItsOwn) {
  num_ranks_ = 4;
  const TrainSettings s = with(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 2}})").settings;
  EXPECT_EQ(s.spread.strategy, "zero3_hpz");
  EXPECT_EQ(s.spread.hpz_partition_size, 2);
  EXPECT_EQ(with(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1}})").settings.spread.strategy,
            "zero3");
  EXPECT_NE(refusal_with(R"({"zero_optimization": {"stage": 2, "zero_hpz_partition_size": 2}})").find("needs stage 3"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
