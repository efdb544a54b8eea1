#include "settings/test_load.h"

namespace tessera {
namespace {

class Combinations : public LoadTest {};

TEST_F(Combinations, OfSpreadingAreRefused) {
  EXPECT_EQ(refusal({"--fp16", "--bf16"}),
            "--fp16=true (command line) and --bf16=true (command line) exclude each other; choose one");
  EXPECT_EQ(refusal({"--strategy=zero2", "--offload_param"}),
            "--offload_param=true (command line): needs a strategy that splits the parameters (zero3, zero3_hpz, "
            "full_shard, shard_grad_op, hybrid_shard, hybrid_shard_zero2), found --strategy=zero2 (command line)");
  EXPECT_EQ(refusal({"--strategy=zero3", "--offload_param"}), "accepted");
  EXPECT_EQ(refusal({"--strategy=shard_grad_op", "--offload_param", "--pin_memory"}), "accepted");
  EXPECT_EQ(refusal({"--strategy=zero1", "--pin_memory"}),
            "--pin_memory=true (command line): only with --offload_optimizer or --offload_param");
  EXPECT_EQ(refusal({"--strategy=zero2", "--delayed_update"}),
            "--delayed_update=true (command line): only with --offload_optimizer");
  EXPECT_EQ(refusal({"--strategy=zero2", "--offload_optimizer", "--delayed_update"}), "accepted");
  EXPECT_EQ(refusal({"--strategy=zero2", "--gpu_memory=6G"}),
            "--gpu_memory=6G (command line): only with --offload_optimizer or --offload_param");
  EXPECT_EQ(refusal({"--strategy=zero2", "--offload_optimizer", "--gpu_memory=6.5G"}), "accepted");
  EXPECT_EQ(refusal({"--strategy=zero2", "--offload_optimizer", "--gpu_memory=auto"}), "accepted");
  EXPECT_EQ(refusal({"--strategy=zero2", "--offload_optimizer", "--gpu_memory=6G", "--units_on_device=2"}),
            "--gpu_memory=6G (command line) and --units_on_device=2 (command line) exclude each other; give one");
  EXPECT_EQ(
      refusal({"--strategy=zero2", "--offload_optimizer", "--units_on_device=2", "--delayed_update"}),
      "--units_on_device=2 (command line): not with --delayed_update=true (command line), which would leave units "
      "on the GPU a step ahead of the others");
  EXPECT_NE(refusal({"--strategy=zero2", "--offload_optimizer", "--gpu_memory=much"}).find("--gpu_memory=much"),
            std::string::npos);
  const std::string ds = file("ds.json", R"({"zero_optimization": {"stage": 3}})");
  EXPECT_EQ(refusal({"--deepspeed", ds, "--fsdp", "full_shard"}),
            "--deepspeed and --fsdp exclude each other; give one");
  EXPECT_EQ(refusal({"--deepspeed", ds, "--strategy", "full_shard"}).substr(0, 41),
            "strategy is full_shard (command line) and");
  EXPECT_EQ(refusal({"--strategy=zero4"}).substr(0, 81),
            "--strategy=zero4 (command line): expected one of auto, single, ddp, zero0, zero1,");
  EXPECT_EQ(refusal({"--strategy=ddp", "--backward_prefetch=none"}),
            "--backward_prefetch=none (command line): only with a strategy that splits the parameters, found ddp");
}

TEST_F(Combinations, OneStrategyIsForOneRank) {
  num_ranks_ = 3;
  EXPECT_EQ(refusal({"--strategy=single"}),
            "--strategy=single (command line): there are 3 ranks; use ddp or another strategy, or start one rank");
  EXPECT_EQ(load({}).settings.spread.strategy, "ddp");
  num_ranks_ = std::nullopt;
  EXPECT_EQ(refusal({"--strategy=single"}), "accepted");
}

TEST_F(Combinations, OfScheduleAndStepsAreRefused) {
  EXPECT_EQ(refusal({"--max_steps=10", "--warmup_steps=11"}),
            "warmup_steps 11: the run has only 10 steps; give fewer, or --warmup_ratio");
  EXPECT_EQ(refusal({"--max_steps=10", "--warmup_steps=10"}), "accepted");
  EXPECT_EQ(refusal({"--max_steps=10", "--warmup_steps=11", "--lr_scheduler_type=constant_with_warmup"}), "accepted");
  EXPECT_EQ(refusal({"--warmup_steps=5", "--lr_scheduler_type=constant"}),
            "--warmup_steps=5 (command line): --lr_scheduler_type=constant (command line) has no warm-up; use "
            "constant_with_warmup");
  EXPECT_EQ(refusal({"--gamma=0.5"}), "--gamma=0.5 (command line): only with --lr_scheduler_type StepLR");
  EXPECT_EQ(refusal({"--warmup_ratio=1.5"}), "--warmup_ratio=1.5 (command line): expected a number from 0 to 1");
  EXPECT_EQ(refusal({"--warmup_type=linear"}),
            "--warmup_type=linear (command line): only with DeepSpeed's schedules, WarmupLR and WarmupDecayLR");
  EXPECT_EQ(notes(load({"--warmup_steps=5", "--warmup_ratio=0.1"})),
            "--warmup_steps=5 (command line) overrides --warmup_ratio=0.1 (command line), as in transformers\n");
  EXPECT_EQ(notes(load({"--max_steps=5", "--num_train_epochs=2"})),
            "--max_steps=5 (command line) overrides --num_train_epochs=2 (command line), as in transformers\n");
  EXPECT_EQ(refusal({"--lr_total_steps=9", "--max_steps=10"}),
            "total_num_steps 9: the run has 10 steps; write \"auto\"");
  EXPECT_EQ(refusal({"--lr_scheduler_type=cosine_with_min_lr"}),
            "--lr_scheduler_type=cosine_with_min_lr: needs one of min_lr and min_lr_rate in --lr_scheduler_kwargs");
}

TEST_F(Combinations, TheTrainerHoldsTheScheduleAgainstItsSteps) {
  const TrainSettings s = load({"--warmup_steps=20"}).settings;
  EXPECT_NO_THROW(check_total_steps(s, 20));
  EXPECT_THROW(check_total_steps(s, 19), UsageError);
}

TEST_F(Combinations, OfOptimizersAreRefused) {
  EXPECT_EQ(refusal({"--momentum=0.9"}), "--momentum=0.9 (command line): only with --optim sgd");
  EXPECT_EQ(refusal({"--optim=sgd", "--momentum=0.9", "--nesterov"}), "accepted");
  EXPECT_EQ(refusal({"--optim=sgd", "--nesterov"}), "--nesterov: needs --momentum above 0");
  EXPECT_EQ(refusal({"--optim=sgd", "--adam_beta1=0.5"}),
            "--adam_beta1=0.5 (command line): only with --optim adamw_torch_fused");
  EXPECT_EQ(refusal({"--optim=adafactor"}),
            "--optim=adafactor (command line): expected one of adamw_torch_fused, adamw_torch, adamw_apex_fused, "
            "adamw_hf, adamw, "
            "adam, sgd, lion_32bit");
  EXPECT_EQ(refusal({"--loss_scale=128"}), "--loss_scale=128 (command line): only with --fp16");
  EXPECT_EQ(refusal({"--fp16", "--loss_scale=128", "--hysteresis=3"}),
            "--hysteresis=3 (command line): only with a dynamic scale, --loss_scale 0");
}

TEST_F(Combinations, EvaluationNeedsData) {
  const Words bare = {"bloom-qa", "--model_name_or_path=m", "--train_file=t.json"};
  const LoadedTrainSettings silent = load_as_is(bare);
  EXPECT_EQ(silent.settings.flow.evaluation, Interval::kNo);
  EXPECT_EQ(notes(silent), "no --validation_file: there will be no evaluation\n");
  Words words = bare;
  words.push_back("--eval_strategy=epoch");
  EXPECT_EQ(refusal_as_is(words),
            "--eval_strategy=epoch (command line): there is no data for it; give --validation_file");
  words.back() = "--do_eval";
  EXPECT_EQ(refusal_as_is(words), "--do_eval=true (command line): there is no data for it; give --validation_file");
  words.back() = "--eval_strategy=no";
  EXPECT_EQ(refusal_as_is(words), "accepted");
  words.back() = "--load_best_model_at_end";
  EXPECT_EQ(refusal_as_is(words),
            "--load_best_model_at_end=true (command line): needs the same strategy for evaluation and saving, found "
            "eval_strategy=epoch (default), without --validation_file, and save_strategy=epoch (default)");
  EXPECT_TRUE(load({"--do_eval", "--eval_strategy=no"}).settings.evaluation.at_end);
  const LoadedTrainSettings off = load({"--validation_file=v.json", "--do_eval=false"});
  EXPECT_EQ(off.settings.flow.evaluation, Interval::kNo);
  EXPECT_EQ(notes(off), "--do_eval=false (command line): there will be no evaluation\n");
  EXPECT_EQ(refusal({"--validation_file=v.json", "--do_eval=false", "--load_best_model_at_end"}),
            "--load_best_model_at_end=true (command line): needs the same strategy for evaluation and saving, found "
            "eval_strategy=epoch (default), with --do_eval=false (command line), and save_strategy=epoch (default)");
  const LoadedTrainSettings both = load({"--validation_file=v.json", "--do_eval=false", "--eval_strategy=epoch"});
  EXPECT_EQ(both.settings.flow.evaluation, Interval::kEpoch);
  EXPECT_NE(notes(both).find("--do_eval=false (command line) changes nothing"), std::string::npos) << notes(both);
}

// The cases that transformers refuses, and those that it accepts.
TEST_F(Combinations, TheBestModelNeedsSavingAndEvaluationTogether) {
  const std::string best = "--load_best_model_at_end";
  EXPECT_EQ(refusal({best}), "accepted");
  EXPECT_EQ(refusal({best, "--eval_strategy=steps", "--save_strategy=epoch"}),
            "--load_best_model_at_end=true (command line): needs the same strategy for evaluation and saving, found "
            "--eval_strategy=steps (command line) and --save_strategy=epoch (command line)");
  const Words steps = {best, "--eval_strategy=steps", "--save_strategy=steps"};
  const auto with = [&](const Words& more) {
    Words words = steps;
    words.insert(words.end(), more.begin(), more.end());
    return refusal(words);
  };
  EXPECT_EQ(with({"--eval_steps=100", "--save_steps=200"}), "accepted");
  EXPECT_EQ(
      with({"--eval_steps=100", "--save_steps=150"}),
      "--load_best_model_at_end=true (command line): needs save_steps that are a multiple of eval_steps, found 150 "
      "and 100");
  EXPECT_EQ(with({"--eval_steps=0.1", "--save_steps=0.3"}), "accepted");
  EXPECT_EQ(with({"--eval_steps=0.1", "--save_steps=0.25"}).substr(0, 36), "--load_best_model_at_end=true (comma");
  EXPECT_EQ(with({"--eval_steps=0.1", "--save_steps=100"}).substr(0, 36), "--load_best_model_at_end=true (comma");
  EXPECT_EQ(refusal({best, "--save_strategy=best", "--metric_for_best_model=f1"}), "accepted");
  EXPECT_EQ(refusal({"--save_strategy=best"}),
            "--save_strategy=best (command line): needs --metric_for_best_model and evaluations during training");
}

TEST_F(Combinations, StepsAreWholeOrSharesAndNeverNone) {
  EXPECT_EQ(refusal({"--eval_strategy=steps", "--eval_steps=1.5"}),
            "--eval_steps=1.5 (command line): expected a whole number, or a fraction below 1");
  EXPECT_EQ(refusal({"--eval_strategy=steps", "--eval_steps=0.25"}), "accepted");
  EXPECT_EQ(refusal({"--logging_steps=0"}), "logging_strategy=steps (default): needs --logging_steps above 0");
  EXPECT_EQ(notes(load({"--eval_steps=10"})),
            "--eval_steps=10 (command line) changes nothing: eval_strategy is epoch\n");
  EXPECT_EQ(load({"--eval_strategy=steps", "--logging_steps=20"}).settings.flow.eval_steps, 20);
}

TEST_F(Combinations, MetricsAreTheJobs) {
  const TrainSettings loss = load({"--load_best_model_at_end"}).settings;
  EXPECT_EQ(loss.evaluation.metric_for_best_model, "loss");
  EXPECT_FALSE(loss.evaluation.greater_is_better);
  const TrainSettings f1 = load({"--load_best_model_at_end", "--metric_for_best_model=eval_f1"}).settings;
  EXPECT_EQ(f1.evaluation.metric_for_best_model, "f1");
  EXPECT_TRUE(f1.evaluation.greater_is_better);
  EXPECT_FALSE(load({"--metric_for_best_model=f1", "--greater_is_better=False"}).settings.evaluation.greater_is_better);
  EXPECT_EQ(refusal({"--metric_for_best_model=accuracy"}),
            "--metric_for_best_model=accuracy (command line): expected one of loss, exact_match, f1");
  EXPECT_EQ(refusal({"--early_stopping_patience=2", "--eval_strategy=no"}),
            "--early_stopping_patience=2 (command line): needs evaluations during training; give --eval_strategy epoch "
            "and --validation_file");
}

TEST_F(Combinations, LoadersAheadNeedWorkers) {
  EXPECT_EQ(refusal({"--dataloader_prefetch_factor=4"}),
            "--dataloader_prefetch_factor=4 (command line): only with --dataloader_num_workers other than 0");
  EXPECT_EQ(refusal({"--dataloader_prefetch_factor=4", "--dataloader_num_workers=2"}), "accepted");
}

TEST_F(Combinations, BuffersAreBatchNormsAlone) {
  EXPECT_EQ(notes(load({"--buffer_dtype=bf16"})),
            "--buffer_dtype=bf16 (command line) changes nothing: the model has no buffers\n");
  EXPECT_EQ(refusal_as_is({"resnet-tinyimagenet", "--data_dir=d", "--buffer_dtype=bf16"}),
            "--buffer_dtype=bf16 (command line): batch norm's statistics stay in fp32; leave it out");
  EXPECT_EQ(refusal_as_is({"resnet-tinyimagenet", "--data_dir=d", "--buffer_dtype=fp32"}), "accepted");
}

TEST_F(Combinations, ThereIsNoHub) {
  EXPECT_EQ(refusal({"--push_to_hub", "true"}),
            "--push_to_hub=true (command line): there is no hub in Tessera; upload the model's folder from "
            "--output_dir yourself");
  EXPECT_EQ(refusal({"--push_to_hub", "False"}), "accepted");
}

}  // namespace
}  // namespace tessera
