#include "experiment/resolved.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "jobs/jobs.h"
#include "support/contains.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace tessera {
namespace {

ResolvedExperiment resolved(const std::string& name, ResolveOptions options = {}) {
  const Catalogue catalogue({.preset = options.preset});
  options.jobs = job_traits();
  return resolve(*catalogue.find(name), catalogue, options);
}

TEST(ResolvedExperiment, IsAcceptedByTrainForEveryPresetAndScale) {
  for (const char* preset : {"guide", "code"}) {
    const Catalogue catalogue({.preset = preset});
    for (const ExperimentSpec& spec : catalogue.all()) {
      for (const Scale scale : {Scale::kFull, Scale::kTiny}) {
        ResolveOptions options;
        options.preset = preset;
        options.scale = scale;
        options.jobs = job_traits();
        const ResolvedExperiment experiment = resolve(spec, catalogue, options);
        EXPECT_EQ(experiment.settings.text("merge_accumulation"), "off") << spec.name;
        EXPECT_EQ(experiment.on_gpus(), scale == Scale::kFull) << spec.name;
      }
    }
  }
}

TEST(ResolvedExperiment, HasTheStepsOfTheWorkshops) {
  const auto steps = [](const std::string& name) { return steps_text(resolved(name), job_traits()); };
  EXPECT_EQ(steps("deepspeed/baseline"), "93 updates: 500 rows, 16 an update, 32 updates an epoch; ends at epoch 2.93");
  EXPECT_TRUE(steps("fsdp/bloom/baseline").starts_with("625 updates")) << steps("fsdp/bloom/baseline");
  for (const char* gpus : {"2", "4", "8", "16"}) {
    const std::string name = std::string("fsdp/custom_model/weak_scaling/") + gpus + "_gpus";
    EXPECT_TRUE(steps(name).starts_with("75 updates: 400 rows, 16 an update")) << steps(name);
  }
}

TEST(ResolvedExperiment, HasTheParametersOfWeakScaling) {
  ResolveOptions options;
  options.settings.set("vocab_size", "250680", "command line");  // BLOOM's tokenizer
  const auto text = [&](const char* gpus) {
    return show_text(resolved(std::string("fsdp/custom_model/weak_scaling/") + gpus + "_gpus", options), job_traits());
  };
  EXPECT_TRUE(contains(text("2"), "664,718,136 parameters")) << text("2");
  EXPECT_TRUE(contains(text("4"), "815,792,952 parameters"));
  EXPECT_TRUE(contains(text("8"), "1,117,942,584 parameters"));
  EXPECT_TRUE(contains(text("16"), "1,722,241,848 parameters"));
}

TEST(ResolvedExperiment, TakesTheStrongerValue) {
  ResolveOptions options;
  options.site_settings.set("train_file", "/data/train.json", "site.json");
  options.site_settings.set("learning_rate", "1", "site.json");
  options.settings.set("learning_rate", "2", "command line");
  options.resources.set("gpus_per_node", "4", "command line");
  const ResolvedExperiment experiment = resolved("deepspeed/single_gpu/zero_2", options);
  EXPECT_EQ(experiment.settings.text("train_file"), "/data/train.json");
  EXPECT_EQ(experiment.settings.text("learning_rate"), "2");
  EXPECT_EQ(experiment.num_ranks(), 4);
  EXPECT_EQ(experiment.settings.text("deepspeed"), "zero2.json");
  EXPECT_TRUE(contains(experiment.files.at("zero2.json"), "\"stage\": 2"));
}

TEST(ResolvedExperiment, AStrongerValueTakesItsRivalAwayWhateverNameItHas) {
  ResolveOptions options;
  options.settings.set("bf16", "true", "command line");
  options.settings.set("max-train-samples", "100", "command line");
  options.settings.set("lr", "3", "command line");
  const ResolvedExperiment experiment = resolved("deepspeed/multi_gpu/2_gpus", options);
  EXPECT_FALSE(experiment.settings.has("fp16"));
  EXPECT_FALSE(experiment.settings.has("samples_per_rank"));
  EXPECT_EQ(experiment.settings.text("max_train_samples"), "100");
  EXPECT_EQ(experiment.settings.text("learning_rate"), "3");
}

TEST(ResolvedExperiment, KeepsPathsRightForTheRunsFolder) {
  ResolveOptions options;
  options.settings.set("train_file", ".", "command line");  // exists from here
  options.settings.set("validation_file", "there/is/none.json", "command line");
  const ResolvedExperiment experiment = resolved("deepspeed/baseline", options);
  EXPECT_TRUE(experiment.settings.text("train_file").starts_with('/'));
  EXPECT_EQ(experiment.settings.text("validation_file"), "there/is/none.json");
}

TEST(ResolvedExperiment, SaysWhatItNeedsBeforeItCanStart) {
  EXPECT_EQ(resolved("ddp/baseline").missing, "--data_dir FOLDER (or DATA_DIR) is missing");
  EXPECT_TRUE(contains(show_text(resolved("ddp/baseline"), job_traits()), "note: it cannot start yet: --data_dir"));
  ResolveOptions site;
  site.site_environment.set("DATA_DIR", "/pictures", "site.json");
  EXPECT_EQ(resolved("ddp/baseline", site).missing, "");
  ResolveOptions tiny;
  tiny.scale = Scale::kTiny;
  EXPECT_EQ(resolved("ddp/baseline", tiny).missing, "") << "the program has pictures";
}

using ResolvedWithData = WithFolder;

TEST_F(ResolvedWithData, NamesWhatTrainWouldFindForTheRunsFolder) {
  write_file_atomically(folder_ / "train-v1.1.json", "{}");
  write_file_atomically(folder_ / "dev-v1.1.json", "{}");
  ResolveOptions options;
  options.environment = Environment({{"DATA_DIR", std::filesystem::relative(folder_).string()}});
  const ResolvedExperiment experiment = resolved("deepspeed/baseline", options);
  EXPECT_EQ(experiment.missing, "");
  EXPECT_EQ(experiment.settings.text("train_file"), folder_ / "train-v1.1.json");
  EXPECT_EQ(experiment.settings.text("validation_file"), folder_ / "dev-v1.1.json");
  options.settings.set("train_file", "/squad.json", "command line");  // which has no other beside it
  EXPECT_TRUE(contains(resolved("deepspeed/baseline", options).missing, "give --validation_file"));
}

TEST(ResolvedExperiment, IsScaledDownWithItsBatchKept) {
  ResolveOptions options;
  options.scale = Scale::kTiny;
  const ResolvedExperiment gpt = resolved("fsdp/custom_model/weak_scaling/16_gpus", options);
  EXPECT_EQ(gpt.settings.text("num_layers"), "8");
  EXPECT_EQ(gpt.settings.text("max_train_samples"), "40");
  EXPECT_EQ(gpt.settings.text("per_device_train_batch_size"), "1");
  EXPECT_FALSE(gpt.settings.has("fp16"));
  const ResolvedExperiment zero = resolved("deepspeed/multi_gpu/8_gpus", options);
  EXPECT_EQ(zero.settings.text("samples_per_rank"), "50");
  EXPECT_EQ(zero.settings.text("gradient_accumulation_steps"), "4");
  EXPECT_EQ(zero.gate.text("size"), "1M");
}

TEST(ResolvedExperiment, RefusesWhatTrainRefuses) {
  ResolveOptions options;
  options.settings.set("learning_rat", "2", "command line");
  EXPECT_TRUE(contains(message_of([&] { resolved("ddp/baseline", options); }), "ddp/baseline: ")) << "the name leads";
  EXPECT_TRUE(contains(message_of([&] { resolved("ddp/baseline", options); }), "learning_rate"));
  ResolveOptions quoted;
  quoted.resources.set("log", "my log/%x.out", "command line");
  EXPECT_TRUE(contains(message_of([&] { resolved("ddp/baseline", quoted); }), "without blanks"));
  ResolveOptions alone;
  alone.gate.set("enabled", "true", "command line");
  EXPECT_TRUE(contains(message_of([&] { resolved("ddp/baseline", alone); }), "at least two ranks"));
  ResolveOptions nodes;
  nodes.resources.set("nodes", "two", "command line");
  EXPECT_TRUE(contains(message_of([&] { resolved("ddp/baseline", nodes); }), "nodes = 'two'"));
}

std::string steps_of(const std::string& job, int num_ranks, const std::string& rows, const std::string& batch_size) {
  ResolvedExperiment experiment;
  experiment.name = "test";
  experiment.job = job;
  experiment.settings.set("max_train_samples", rows, "test");
  experiment.settings.set("per_device_train_batch_size", batch_size, "test");
  experiment.resources.set("nodes", "1", "test");
  experiment.resources.set("gpus_per_node", std::to_string(num_ranks), "test");
  return steps_text(experiment, job_traits());
}

TEST(ShowText, ImagesAreDealtToRanksAndTheShortLastBatchStays) {
  EXPECT_EQ(steps_of("resnet-tinyimagenet", 1, "100000", "512"),
            "588 updates: 100000 rows, 512 an update, 196 updates an epoch; ends at epoch 3.00");
  EXPECT_EQ(steps_of("resnet-tinyimagenet", 1, "2000", "512"),
            "12 updates: 2000 rows, 512 an update, 4 updates an epoch; ends at epoch 3.00");
  // 1 of 1025 does not divide evenly between 2 ranks.
  EXPECT_EQ(steps_of("resnet-tinyimagenet", 2, "1025", "512"),
            "3 updates: 1025 rows, 1024 an update, 1 updates an epoch; ends at epoch 3.00");
  EXPECT_EQ(steps_of("gpt-qa", 2, "1025", "512"),
            "6 updates: 1025 rows, 1024 an update, 2 updates an epoch; ends at epoch 3.00");
}

}  // namespace
}  // namespace tessera
