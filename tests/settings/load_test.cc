#include "settings/load.h"

#include "core/text.h"
#include "settings/test_load.h"
#include "train/schedule.h"

namespace tessera {
namespace {

class JobSettings : public LoadTest {};

TEST_F(JobSettings, BloomHasTheWorkshopsValues) {
  const TrainSettings s = load({}).settings;
  EXPECT_EQ(s.job, "bloom-qa");
  EXPECT_EQ(s.loop.batch_size, 4);
  EXPECT_EQ(s.loop.eval_batch_size, 4);
  EXPECT_EQ(s.loop.accumulation, 4);
  EXPECT_EQ(s.loop.num_epochs, 3);
  EXPECT_EQ(s.loop.max_steps, 0);
  EXPECT_EQ(s.loop.seed, 42);
  EXPECT_EQ(s.loop.data_seed, 42);
  EXPECT_EQ(optimizer_of(s.optimizer.optim).name, "adamw");
  EXPECT_EQ(s.optimizer.learning_rate, 5e-5);
  EXPECT_EQ(s.optimizer.numbers.weight_decay, 0.01);
  EXPECT_EQ(s.optimizer.numbers.beta1, 0.9);
  EXPECT_EQ(s.optimizer.numbers.beta2, 0.999);
  EXPECT_EQ(s.optimizer.numbers.epsilon, 1e-8);
  EXPECT_EQ(s.optimizer.max_grad_norm, 1);
  EXPECT_EQ(s.schedule.kind, "linear");
  EXPECT_EQ(s.schedule.learning_rate, 5e-5);
  EXPECT_EQ(s.precision.compute, NumberType::kFloat32);
  EXPECT_FALSE(s.precision.half_on_gpu);
  EXPECT_EQ(s.flow.evaluation, Interval::kEpoch);
  EXPECT_EQ(s.flow.saving, Interval::kEpoch);
  EXPECT_EQ(s.flow.logging, Interval::kSteps);
  EXPECT_EQ(s.flow.logging_steps, 500);
  EXPECT_FALSE(s.loop.gradient_checkpointing);
  EXPECT_EQ(s.output.output_dir, "./bloom-qa-finetuned");
  EXPECT_EQ(s.data.max_length, 512);
  EXPECT_EQ(s.data.label_mode, "answer");
  EXPECT_TRUE(s.data.shuffle);
  EXPECT_EQ(s.evaluation.max_new_tokens, 50);
  EXPECT_EQ(s.spread.strategy, "single");
  EXPECT_EQ(s.reports.tensorboard, true);
  EXPECT_EQ(s.reports.wandb, false);
}

TEST_F(JobSettings, GptHasTheWorkshopsModel) {
  const TrainSettings s = load_as_is({"gpt-qa", "--tokenizer_name=t", "--train_file=t.json"}).settings;
  EXPECT_EQ(s.model.vocab_size, 50000);
  EXPECT_EQ(s.model.hidden_size, 2048);
  EXPECT_EQ(s.model.num_layers, 3);
  EXPECT_EQ(s.model.num_heads, 16);
  EXPECT_EQ(s.model.ff_dim, 8192);
  EXPECT_EQ(s.model.seq_length, 512);
  EXPECT_EQ(s.model.dropout, 0.1);
  EXPECT_FALSE(s.model.learned_positions);
  EXPECT_EQ(s.flow.logging_steps, 10);
}

TEST_F(JobSettings, ResnetIsToldInItsOwnWords) {
  const Words words = {"resnet-tinyimagenet",
                       "--data_dir",
                       "tiny",
                       "--epochs",
                       "5",
                       "--batch-size",
                       "64",
                       "--num-workers",
                       "4",
                       "--lr",
                       "0.01",
                       "--momentum",
                       "0.8",
                       "--weight-decay",
                       "1e-3",
                       "--step-size",
                       "10",
                       "--gamma",
                       "0.5",
                       "--local_metrics"};
  const TrainSettings s = load_as_is(words).settings;
  EXPECT_EQ(s.data.data_dir, "tiny");
  EXPECT_EQ(s.loop.num_epochs, 5);
  EXPECT_EQ(s.loop.batch_size, 64);
  EXPECT_EQ(s.loop.eval_batch_size, 64);
  EXPECT_EQ(s.data.num_workers, 4);
  EXPECT_EQ(optimizer_of(s.optimizer.optim).name, "sgd");
  EXPECT_EQ(s.optimizer.learning_rate, 0.01);
  EXPECT_EQ(s.optimizer.numbers.momentum, 0.8);
  EXPECT_EQ(s.optimizer.numbers.weight_decay, 1e-3);
  EXPECT_EQ(s.schedule.kind, "StepLR");
  EXPECT_EQ(s.schedule.step_size, 10);
  EXPECT_EQ(s.schedule.gamma, 0.5);
  EXPECT_TRUE(s.evaluation.local_metrics);
}

TEST_F(JobSettings, ResnetsDefaultsAreTheWorkshops) {
  environment_ = {{"DATA_DIR", "tiny"}};
  const TrainSettings s = load_as_is({"resnet-tinyimagenet"}).settings;
  EXPECT_EQ(s.data.data_dir, "tiny");
  EXPECT_EQ(s.loop.num_epochs, 3);
  EXPECT_EQ(s.loop.batch_size, 512);
  EXPECT_EQ(s.loop.eval_batch_size, 512);
  EXPECT_EQ(s.optimizer.learning_rate, 0.001);
  EXPECT_EQ(s.optimizer.numbers.momentum, 0.9);
  EXPECT_EQ(s.optimizer.numbers.weight_decay, 1e-4);
  EXPECT_EQ(s.schedule.step_size, 30);
  EXPECT_EQ(s.schedule.gamma, 0.1);
  EXPECT_EQ(s.optimizer.max_grad_norm, 0);
  EXPECT_TRUE(s.data.sampler_drop_last);  // the uneven tail between ranks goes, the short last batch stays
  EXPECT_FALSE(s.data.drop_last);
  EXPECT_TRUE(s.precision.half_on_gpu);
  EXPECT_EQ(s.precision.compute, NumberType::kFloat32);
  EXPECT_FALSE(load_as_is({"resnet-tinyimagenet", "--no_fp16"}).settings.precision.half_on_gpu);
}

TEST_F(JobSettings, BooleansAreGivenAsTransformersUsersGiveThem) {
  for (const Words& words : {Words{"--fp16"}, Words{"--fp16", "True"}, Words{"--fp16=1"}}) {
    EXPECT_EQ(load(words).settings.precision.compute, NumberType::kFloat16);
  }
  for (const Words& words : {Words{"--no_fp16"}, Words{"--fp16", "False"}, Words{}}) {
    EXPECT_EQ(load(words).settings.precision.compute, NumberType::kFloat32);
  }
  EXPECT_EQ(load({"--bf16"}).settings.precision.compute, NumberType::kBFloat16);
}

TEST_F(JobSettings, OldNamesAreTheNewOnes) {
  EXPECT_EQ(load({"--evaluation_strategy", "steps", "--eval_steps", "7"}).settings.flow.eval_steps, 7);
  EXPECT_EQ(load({"--per_gpu_train_batch_size", "3"}).settings.loop.batch_size, 3);
  EXPECT_TRUE(load({"--no_cuda"}).settings.use_cpu);
}

TEST_F(JobSettings, ScheduleTypesAreThoseThatThereAre) {
  for (const std::string& kind : schedule_kinds()) {
    const Words words = {"--lr_scheduler_type", kind, "--lr_scheduler_kwargs",
                         kind == "cosine_with_min_lr" ? R"({"min_lr": 1e-6})" : "{}"};
    EXPECT_EQ(load(words).settings.schedule.kind, kind);
  }
  EXPECT_EQ(refusal({"--lr_scheduler_type", "reduce_lr_on_plateau"}).substr(0, 75),
            "--lr_scheduler_type=reduce_lr_on_plateau (command line): expected one of li");
  EXPECT_EQ(load({"--lr_scheduler_type=cosine", "--lr_scheduler_kwargs", R"({"num_cycles": 1.5})"})
                .settings.schedule.num_cycles,
            1.5);
  EXPECT_EQ(refusal({"--lr_scheduler_kwargs", R"({"num_cycles": 1.5})"}),
            "--lr_scheduler_kwargs: lr_scheduler_type=linear (default) has no option num_cycles");
}

TEST_F(JobSettings, OptionsOfAScheduleAreHeldToTheirRanges) {
  const auto refused = [&](const std::string& kind, const std::string& options) {
    return refusal({"--lr_scheduler_type", kind, "--lr_scheduler_kwargs", options});
  };
  EXPECT_EQ(refused("cosine", R"({"num_cycles": -1})"),
            "--lr_scheduler_kwargs: num_cycles: expected a number from 0 to 1000000000, found -1");
  EXPECT_EQ(refused("polynomial", R"({"power": -2})"),
            "--lr_scheduler_kwargs: power: expected a number from 0 to 1000000000, found -2");
  EXPECT_EQ(refused("cosine_with_min_lr", R"({"min_lr_rate": 1.5})"),
            "--lr_scheduler_kwargs: min_lr_rate: expected a number from 0 to 1, found 1.5");
  EXPECT_EQ(refused("inverse_sqrt", R"({"timescale": 0})"),
            "--lr_scheduler_kwargs: timescale: expected a number from 1 to 1e+18, found 0");
  EXPECT_EQ(refused("cosine", R"({"num_cycles": "2"})"),
            "--lr_scheduler_kwargs: num_cycles: expected a number from 0 to 1000000000, found \"2\"");
  EXPECT_EQ(refused("cosine", R"({"num_cycles": 0})"), "accepted");
}

// Times the number of ranks it would not fit in 64 bits.
TEST_F(JobSettings, MoreSamplesPerRankThanCanBeCountedAreRefused) {
  num_ranks_ = 4;
  EXPECT_EQ(refusal({"--samples_per_rank=9223372036854775807"}),
            "--samples_per_rank=9223372036854775807 (command line): expected a whole number from 0 to 1000000000");
  EXPECT_EQ(load({"--samples_per_rank=1000000000"}).settings.data.max_train_samples, 4'000'000'000);
}

TEST_F(JobSettings, AnEpsilonOfNothingIsSpokenOf) {
  const auto note = [](const std::string& epsilon) {
    return "--adam_epsilon=" + epsilon +
           " (command line): a parameter whose gradients were all 0 is updated by 0 / 0 and becomes NaN; use 1e-8\n";
  };
  EXPECT_EQ(notes(load({"--adam_epsilon=0"})), note("0"));
  EXPECT_EQ(notes(load({"--adam_epsilon=1e-60"})), note("1e-60"));  // 0 in float32
  EXPECT_EQ(notes(load({"--adam_epsilon=1e-30"})), "");
}

TEST_F(JobSettings, AMisspeltNameIsToldTheRightOne) {
  EXPECT_EQ(refusal({"--per_device_train_batchsize", "8"}),
            "unknown setting --per_device_train_batchsize (command line); did you mean --per_device_train_batch_size?");
  EXPECT_EQ(refusal_as_is({"resnet-tinyimagenet", "--predict_with_generate=true"}),
            "unknown setting --predict_with_generate (command line); see tessera train resnet-tinyimagenet --help");
  EXPECT_EQ(refusal({"8"}), "unexpected word '8' (command line); see tessera train bloom-qa --help");
}

TEST_F(JobSettings, TheJobComesFirstAndIsKnown) {
  std::vector<std::string> names;
  for (const JobTraits* job : job_traits()) names.push_back(job->name);
  const std::string jobs = join(names, ", ");
  EXPECT_TRUE(jobs.starts_with("sft, lm, qa, bloom-qa, gpt-qa, resnet-tinyimagenet")) << jobs;
  EXPECT_EQ(refusal_as_is({"bloom_qa"}),
            "tessera train: 'bloom_qa' is not a job, did you mean bloom-qa?; jobs: " + jobs);
  EXPECT_EQ(refusal_as_is({"--fp16", "bloom-qa"}), "tessera train: the job comes first: one of " + jobs);
  EXPECT_EQ(refusal_as_is({}).substr(0, 13), "tessera train");
  testing::internal::CaptureStdout();
  EXPECT_TRUE(load_as_is({"--help"}).is_done);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("resnet-tinyimagenet"), std::string::npos);
  testing::internal::CaptureStdout();
  EXPECT_TRUE(load_as_is({"gpt-qa", "--help", "all"}).is_done);
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_NE(help.find("--seq_length"), std::string::npos);
  EXPECT_EQ(help.find("--hub_token"), std::string::npos);  // what has no effect is not advertised
}

TEST_F(JobSettings, SourcesAreRankedCommandLineJsonEnvironmentEnvFileDefault) {
  const std::string env_file = file("env_vars.sh",
                                    "export LEARNING_RATE=1e-1\nexport NUM_EPOCHS=7\nexport MAX_LENGTH=100\n"
                                    "export WEIGHT_DECAY=0.3\nexport EVAL_SIZE=11\n");
  const std::string ds = file("ds.json", R"({"zero_optimization": {"stage": 2},
    "optimizer": {"type": "AdamW", "params": {"lr": 0.003, "weight_decay": "auto"}}})");
  environment_ = {{"LR", "1e-2"}, {"NUM_EPOCHS", "6"}, {"MAX_LENGTH", "90"}};
  const Words words = {"--env_file", env_file, "--deepspeed", ds, "--max_length", "80"};
  const LoadedTrainSettings loaded = load(words);
  EXPECT_EQ(loaded.settings.data.max_length, 80);
  EXPECT_EQ(origin(loaded, "max_length"), "command line");
  EXPECT_EQ(loaded.settings.optimizer.learning_rate, 0.003);
  EXPECT_EQ(origin(loaded, "learning_rate"), "ds.json: optimizer.params.lr");
  EXPECT_EQ(loaded.settings.loop.num_epochs, 6);
  EXPECT_EQ(origin(loaded, "num_train_epochs"), "NUM_EPOCHS in the environment");
  EXPECT_EQ(loaded.settings.optimizer.numbers.weight_decay, 0.3);  // "auto" leaves it to the other sources
  EXPECT_EQ(origin(loaded, "weight_decay"), "WEIGHT_DECAY in env_vars.sh");
  EXPECT_EQ(loaded.settings.data.max_eval_samples, 11);
  EXPECT_EQ(origin(loaded, "seed"), "default");
}

TEST_F(JobSettings, PrintConfigShowsEachValueWithItsOrigin) {
  const std::string ds = file("ds.json", R"({"zero_optimization": {"stage": 3}, "fp16": {"enabled": true}})");
  environment_ = {{"BATCH_SIZE", "2"}, {"WANDB_API_KEY", "hunter2"}};
  testing::internal::CaptureStdout();
  // No data is named: showing settings does not need any.
  const LoadedTrainSettings loaded =
      load_as_is({"bloom-qa", "--print_config", "--deepspeed", ds, "--seed=7", "--hub_token=hunter3"});
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(loaded.is_done);
  const auto line_of = [&](const std::string& name) {
    const std::size_t at = text.find("\n" + name + " ");
    std::string line = at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    std::string words;
    for (const char c : line) {
      if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
    }
    return words;
  };
  EXPECT_EQ(line_of("seed"), "seed 7 command line");
  EXPECT_EQ(line_of("strategy"), "strategy zero3 " + ds + ": zero_optimization.stage");
  EXPECT_EQ(line_of("fp16"), "fp16 true " + ds + ": fp16.enabled");
  EXPECT_EQ(line_of("hysteresis"), "hysteresis 2 " + ds + ": fp16.hysteresis, DeepSpeed's default");
  EXPECT_EQ(line_of("per_device_train_batch_size"), "per_device_train_batch_size 2 BATCH_SIZE in the environment");
  EXPECT_EQ(line_of("max_grad_norm"), "max_grad_norm 1 default");
  EXPECT_EQ(line_of("hub_token"), "hub_token (set) command line");
  EXPECT_EQ(text.find("hunter"), std::string::npos);
}

TEST_F(JobSettings, WhatTheJobNeedsIsAskedFor) {
  EXPECT_EQ(refusal_as_is({"bloom-qa", "--model_name_or_path=m"}).substr(0, 65),
            "--train_file FILE is missing, and there is no SQuAD in data, data");
  EXPECT_EQ(refusal_as_is({"bloom-qa", "--train_file=t"}),
            "--model_name_or_path FOLDER, or --config_name FILE for a model from scratch, is missing");
  EXPECT_EQ(refusal_as_is({"bloom-qa", "--train_file=t", "--config_name=c"}),
            "--tokenizer_name PATH, which a model from scratch needs, is missing");
  EXPECT_EQ(refusal_as_is({"bloom-qa", "--train_file=t", "--config_name=c", "--tokenizer_name=k"}), "accepted");
  EXPECT_EQ(refusal_as_is({"gpt-qa", "--train_file=t"}), "--tokenizer_name PATH is missing");
  EXPECT_EQ(refusal_as_is({"gpt-qa", "--train_file=t", "--model_name_or_path=m"}),
            "--model_name_or_path=m (command line): gpt-qa trains a new model, and would not read these weights; "
            "`tessera train qa` trains the model of a folder. For its tokenizer alone give --tokenizer_name m");
  EXPECT_EQ(refusal_as_is({"resnet-tinyimagenet"}), "--data_dir FOLDER (or DATA_DIR) is missing");
  EXPECT_EQ(
      refusal({"--config_name=c"}),
      "--model_name_or_path=m (command line) and --config_name=c (command line) exclude each other: the folder has "
      "a config.json of its own");
}

TEST_F(JobSettings, OtherLayersAddTheirSettings) {
  std::string backend;
  const auto loaded = load_train_settings(
      {.jobs = job_traits(),
       .arguments = {"bloom-qa", "--model_name_or_path=m", "--train_file=t", "--backend=mpi"},
       .environment = Environment(),
       .num_ranks = 2,
       .declare_more = [&](Schema& schema) { schema.text("backend", &backend, "", {.preset = "auto"}); }});
  EXPECT_EQ(backend, "mpi");
  EXPECT_EQ(loaded.settings.spread.strategy, "ddp");  // two ranks, no strategy given
  EXPECT_EQ(loaded.schema->to_json().at("backend"), "mpi");
}

TEST_F(JobSettings, WeakScalingFollowsTheRanks) {
  num_ranks_ = 4;
  const Words gpt = {"gpt-qa", "--tokenizer_name=t", "--train_file=t.json"};
  Words words = gpt;
  words.insert(words.end(), {"--layers_per_rank=1.5", "--samples_per_rank=250"});
  const LoadedTrainSettings loaded = load_as_is(words);
  EXPECT_EQ(loaded.settings.model.num_layers, 6);
  EXPECT_EQ(origin(loaded, "num_layers"), "follows from layers_per_rank");
  EXPECT_EQ(loaded.settings.data.max_train_samples, 1000);
  EXPECT_EQ(notes(loaded),
            "weak scaling: 6 layers, 1.5 for each of 4 ranks\nweak scaling: 1000 samples, 250 for each of 4 ranks\n"
            "no --validation_file: there will be no evaluation\n");
  num_ranks_ = 3;
  EXPECT_EQ(
      refusal_as_is(words),
      "--layers_per_rank=1.5 (command line): times 3 ranks makes 4.5 layers, which is not a whole number of layers");
  words.push_back("--num_layers=6");
  EXPECT_EQ(refusal_as_is(words), "--layers_per_rank=1.5 (command line) and --num_layers=6 (command line): give one");
  EXPECT_EQ(refusal({"--samples_per_rank=2", "--max_train_samples=3"}),
            "--samples_per_rank=2 (command line) and --max_train_samples=3 (command line): give one");
}

TEST_F(JobSettings, WeakScalingOnTheCommandLineOverridesAnEnvFile) {
  num_ranks_ = 2;
  const LoadedTrainSettings loaded =
      load_as_is({"gpt-qa", "--tokenizer_name=t", "--train_file=t.json", "--layers_per_rank=1.5",
                  "--samples_per_rank=250", "--env_file", file("env.sh", "TRAIN_SIZE=500\nNUM_LAYERS=12\n")});
  EXPECT_EQ(loaded.settings.model.num_layers, 3);
  EXPECT_EQ(loaded.settings.data.max_train_samples, 500);
  EXPECT_EQ(notes(loaded),
            "--layers_per_rank=1.5 (command line) overrides num_layers=12 (NUM_LAYERS in env.sh)\n"
            "weak scaling: 3 layers, 1.5 for each of 2 ranks\n"
            "--samples_per_rank=250 (command line) overrides max_train_samples=500 (TRAIN_SIZE in env.sh)\n"
            "weak scaling: 500 samples, 250 for each of 2 ranks\n"
            "no --validation_file: there will be no evaluation\n");
}

TEST_F(JobSettings, WithoutAFileSquadIsLookedFor) {
  environment_ = {{"HF_DATASETS_CACHE", file("cache", "")}};
  const std::string folder = std::filesystem::path(file("train-v1.1.json", "")).parent_path().string();
  environment_["DATA_DIR"] = folder;
  const Words words = {"bloom-qa", "--model_name_or_path=m"};
  const LoadedTrainSettings loaded = load_as_is(words);
  EXPECT_EQ(loaded.settings.data.train_file, folder + "/train-v1.1.json");
  EXPECT_EQ(loaded.settings.data.validation_file, "");
  EXPECT_EQ(notes(loaded),
            "--train_file is not given: using train-v1.1.json\nno --validation_file: there will be no evaluation\n");
  file("dev-v1.1.json", "");
  environment_["EVAL_SIZE"] = "50";  // asks for an evaluation
  EXPECT_EQ(load_as_is(words).settings.data.validation_file, folder + "/dev-v1.1.json");
}

TEST_F(JobSettings, GptsSequencesAreAtMostItsLength) {
  const Words gpt = {"gpt-qa", "--tokenizer_name=t", "--train_file=t.json", "--seq_length=256"};
  EXPECT_EQ(load_as_is(gpt).settings.data.max_length, 256);
  Words words = gpt;
  words.push_back("--max_length=512");
  EXPECT_EQ(refusal_as_is(words), "--max_length=512 (command line) is more than --seq_length=256 (command line)");
}

TEST_F(JobSettings, ResumingTakesAFolderOrTheNewest) {
  EXPECT_TRUE(load({"--resume_from_checkpoint", "True"}).settings.output.resume_from_latest);
  const TrainSettings named = load({"--resume_from_checkpoint", "out/checkpoint-5"}).settings;
  EXPECT_FALSE(named.output.resume_from_latest);
  EXPECT_EQ(named.output.resume_from_checkpoint, "out/checkpoint-5");
}

TEST_F(JobSettings, ReportsGoWhereTheyAreToldTo) {
  const TrainSettings all = load({"--report_to=all", "--run_name=r"}).settings;
  EXPECT_TRUE(all.reports.tensorboard);
  EXPECT_TRUE(all.reports.wandb);
  EXPECT_EQ(all.reports.wandb_name, "r");
  const TrainSettings none = load({"--report_to", "none"}).settings;
  EXPECT_FALSE(none.reports.tensorboard || none.reports.wandb);
  environment_ = {{"WANDB_MODE", "online"}, {"WANDB_PROJECT", "p"}, {"EXPERIMENT_NAME", "e"}, {"WANDB_NAME", "w"}};
  EXPECT_EQ(load({}).settings.reports.wandb_project, "p");
  EXPECT_EQ(load({}).settings.reports.run_name, "e");
  EXPECT_EQ(load({}).settings.reports.wandb_name, "w");
  EXPECT_EQ(notes(load({})),
            "wandb_mode=online (WANDB_MODE in the environment) changes nothing: there is no report to W&B; --report_to "
            "tensorboard,wandb writes an offline run, which `wandb sync` uploads\n");
  EXPECT_EQ(notes(load({"--report_to=tensorboard"})), "");
  EXPECT_EQ(refusal({"--report_to=wandb"}),
            "wandb_mode=online (WANDB_MODE in the environment): Tessera writes offline runs; use offline, and `wandb "
            "sync` the folder afterwards");
  EXPECT_EQ(refusal({"--report_to=mlflow"}),
            "--report_to=mlflow (command line): expected tensorboard, wandb, all or none, separated by commas");
  environment_ = {{"WANDB_MODE", "disabled"}};
  EXPECT_FALSE(load({"--report_to=wandb"}).settings.reports.wandb);
  environment_ = {{"WANDB_RUN_ID", "../a"}};
  EXPECT_EQ(refusal({"--report_to=wandb"}),
            "wandb_run_id=../a (WANDB_RUN_ID in the environment): must not contain / \\ # ? % : or a space");
  environment_ = {};
  EXPECT_EQ(refusal({"--report_to", "tensorboard", "wandb"}),
            "unexpected word 'wandb' (command line); --report_to takes several values with commas between them; "
            "see tessera train bloom-qa --help");
}

}  // namespace
}  // namespace tessera
