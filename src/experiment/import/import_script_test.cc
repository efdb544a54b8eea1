// Whole scripts, as users have them: tests/data/import.
#include "experiment/import/import_script.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "jobs/jobs.h"

namespace tessera {
namespace {

const std::filesystem::path kScripts = std::filesystem::path(TESSERA_TEST_DATA_FOLDER) / "import";

ImportRequest import_request(const std::filesystem::path& path) {
  return {.path = path, .output = {}, .name = {}, .job = {}, .launch = 0, .jobs = job_traits(), .environment = {}};
}

std::string import_refusal(const ImportRequest& request) {
  try {
    import_script(request);
  } catch (const UsageError& error) {
    return error.what();
  } catch (const Error& error) {
    return error.status() == ExitStatus::kUsage ? error.what() : "another status";
  }
  return "accepted";
}
std::string broken_refusal(const std::string& name) {
  return import_refusal(import_request(kScripts / "broken" / name));
}

// The remark on `what`, with its kind: "taken: ..."
std::string told_about(const Import& imported, const std::string& what) {
  const std::vector<std::string> kinds = {"taken", "site", "not needed", "computed", "left out"};
  for (const Remark& remark : imported.remarks) {
    if (remark.what == what) return kinds.at(static_cast<std::size_t>(remark.kind)) + ": " + remark.why;
  }
  return "nothing";
}

// Settings and resources of the experiment file, as the catalogue reads it.
ExperimentSpec spec_of(const Import& imported) {
  return read_catalogue_file(imported.text, "x.json", "guide").experiments.at(0);
}

// A script of one test.
class ImportedText : public testing::Test {
 protected:
  ImportedText()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~ImportedText() override { std::filesystem::remove_all(folder_); }

  ImportRequest request(const std::string& script) {
    std::ofstream(folder_ / "s.sbatch") << "#!/bin/bash\n" << script;
    return import_request(folder_ / "s.sbatch");
  }
  Import import(const std::string& script) { return import_script(request(script)); }

  std::filesystem::path folder_;
};

TEST(ImportScript, SingleGpuWithEnvFile) {
  const Import imported = import_script(import_request(kScripts / "single_gpu"));
  const ExperimentSpec spec = spec_of(imported);
  EXPECT_EQ(spec.name, "imported/bloom-baseline");
  EXPECT_EQ(spec.job, "bloom-qa");
  EXPECT_EQ(spec.settings.text("model_name_or_path"), "bigscience/bloom-560m");
  EXPECT_EQ(spec.settings.text("max_train_samples"), "500");
  EXPECT_EQ(spec.settings.text("learning_rate"), "5e-05");
  EXPECT_EQ(spec.settings.text("report_to"), "wandb,tensorboard");
  EXPECT_EQ(spec.settings.text("strategy"), "single");
  EXPECT_FALSE(spec.settings.has("output_dir"));
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "1");
  EXPECT_EQ(spec.resources.text("time"), "00:30:00");
  EXPECT_EQ(spec.resources.text("memory"), "64G");
  EXPECT_EQ(spec.environment.text("NCCL_DEBUG"), "INFO");
  EXPECT_EQ(told_about(imported, "--partition=gpu"), "site: a fact of the cluster");
  EXPECT_EQ(told_about(imported, "psrecord"), "not needed: --monitor writes the same logs; experiments always do");
  EXPECT_EQ(told_about(imported, "WANDB_NAME"), "computed: $SLURM_JOB_ID is known only while the job runs");
  EXPECT_NE(imported.command.find("tessera train bloom-qa"), std::string::npos);
  EXPECT_NE(imported.resolved.missing.find("--train_file"), std::string::npos);
}

TEST(ImportScript, KeepsSecretsToItself) {
  const Import imported = import_script(import_request(kScripts / "single_gpu"));
  EXPECT_EQ((imported.text + import_report(imported)).find("0123456789abcdef"), std::string::npos);
}

TEST(ImportScript, SeveralGpusWithFsdpConfig) {
  const Import imported = import_script(import_request(kScripts / "multi_gpu"));
  const ExperimentSpec spec = spec_of(imported);
  EXPECT_EQ(spec.settings.text("fsdp"), "full_shard auto_wrap");
  EXPECT_EQ(spec.settings.text("fsdp_config"), "catalogue:F-B-4G1N/fsdp_config.json");
  EXPECT_TRUE(imported.files.contains("F-B-4G1N/fsdp_config.json"));
  EXPECT_EQ(spec.settings.text("seed"), "42");
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "4");
  EXPECT_EQ(spec.resources.text("reserved_gpus_per_node"), "8");
  EXPECT_TRUE(std::filesystem::path(spec.settings.text("train_file")).is_absolute());
  EXPECT_EQ(told_about(imported, "--my_own_option"), "left out: not a setting of bloom-qa");
  EXPECT_EQ(told_about(imported, "--torch_compile"), "left out: kernels are compiled ahead of time; leave it out");
  EXPECT_NE(imported.command.find("--nproc_per_node 4 train bloom-qa"), std::string::npos);
}

TEST(ImportScript, SeveralNodesWithGateAndTorchrunInSrun) {
  const Import imported = import_script(import_request(kScripts / "multi_node"));
  const ExperimentSpec spec = spec_of(imported);
  EXPECT_EQ(spec.job, "gpt-qa");
  EXPECT_EQ(spec.settings.text("tokenizer_name"), "bigscience/bloom-560m");
  EXPECT_EQ(spec.settings.text("hidden_size"), "2048");
  EXPECT_EQ(spec.settings.text("wrap_classes"), "TransformerEncoderLayer");
  EXPECT_EQ(spec.resources.text("nodes"), "2");
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "4");
  EXPECT_EQ(spec.resources.text("memory"), "128G");
  EXPECT_EQ(spec.gate.text("enabled"), "true");
  EXPECT_EQ(spec.gate.text("size"), "2G");
  EXPECT_EQ(spec.gate.text("min_busbw"), "5");
  EXPECT_EQ(told_about(imported, "MASTER_ADDR"), "not needed: ranks find each other by themselves");
  EXPECT_EQ(told_about(imported, "--output_dir"), "computed: $SLURM_JOB_ID is known only while the job runs");
  EXPECT_TRUE(imported.command.find("srun") != std::string::npos);
}

TEST(ImportScript, DeepspeedLauncherKeepsItsConfig) {
  const Import imported = import_script(import_request(kScripts / "deepspeed"));
  const ExperimentSpec spec = spec_of(imported);
  EXPECT_EQ(spec.settings.text("deepspeed"), "catalogue:2ZO-2G1N/zero2.json");
  EXPECT_NE(imported.files.at("2ZO-2G1N/zero2.json").find("offload_optimizer"), std::string::npos);
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "2");
  EXPECT_EQ(spec.settings.text("model_name_or_path"), "bigscience/bloom-560m");
  EXPECT_FALSE(spec.settings.has("strategy"));
}

TEST(ImportScript, AccelerateLaunchFromVariablesAndYaml) {
  const Import imported = import_script(import_request(kScripts / "accelerate"));
  const ExperimentSpec spec = spec_of(imported);
  EXPECT_EQ(spec.settings.text("fsdp_config"), "catalogue:accelerate_bloom/fsdp.json");
  EXPECT_EQ(spec.settings.text("bf16"), "true");
  EXPECT_EQ(spec.resources.text("nodes"), "2");
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "4");
  EXPECT_EQ(spec.resources.text("memory"), "0");
  EXPECT_EQ(told_about(imported, "fsdp_config.fsdp_new_feature"), "left out: not a key that Tessera knows");
}

TEST(ImportScript, TasksOfSrunAreRanks) {
  const ExperimentSpec spec = spec_of(import_script(import_request(kScripts / "images")));
  EXPECT_EQ(spec.job, "resnet-tinyimagenet");
  EXPECT_EQ(spec.settings.text("strategy"), "ddp");
  EXPECT_EQ(spec.settings.text("per_device_train_batch_size"), "512");
  EXPECT_EQ(spec.settings.text("dataloader_num_workers"), "4");
  EXPECT_EQ(spec.resources.text("nodes"), "2");
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "2");
  EXPECT_EQ(spec.resources.text("cpus_per_task"), "8");  // two tasks of four
}

TEST(ImportScript, RefusesBrokenScriptsWithPlaceAndAdvice) {
  EXPECT_EQ(broken_refusal("binary.sbatch"), "binary.sbatch: expected a script, found a binary file");
  EXPECT_EQ(broken_refusal("open_quote.sbatch"), "open_quote.sbatch:3: the quote \" that opens here is not closed");
  EXPECT_EQ(broken_refusal("no_launch.sbatch"),
            "no_launch.sbatch: it starts no training: expected a line with python, torchrun, deepspeed or accelerate");
  EXPECT_EQ(broken_refusal("missing_env.sbatch"),
            "missing_env.sbatch:3: source settings.sh: there is no such file; put it beside missing_env.sbatch, or "
            "remove the line");
  EXPECT_EQ(broken_refusal("missing_json.sbatch"),
            "missing_json.sbatch:3: --deepspeed none.json: there is no such file beside the script");
  EXPECT_EQ(broken_refusal("wrong_time.sbatch"),
            "wrong_time.sbatch:2: --time=soon: expected minutes, HH:MM:SS or D-HH:MM:SS");
  EXPECT_EQ(broken_refusal("wrong_value.sbatch"),
            "wrong_value.sbatch:3: --learning_rate=fast (command line): expected a number of at least 0");
  EXPECT_EQ(broken_refusal("refused.sbatch").find("refused.sbatch:3: --deepspeed: nvme.json:1:"), 0U);
  EXPECT_NE(broken_refusal("none.sbatch").find("there is no such script or folder"), std::string::npos);
}

TEST(ImportScript, AsksForTheJobIfNoneOrSeveralFit) {
  EXPECT_NE(broken_refusal("unknown_model.sbatch").find("say it with --job: sft, lm, qa, bloom-qa, gpt-qa"),
            std::string::npos);
  EXPECT_NE(broken_refusal("two_jobs.sbatch").find("say which with --job"), std::string::npos);
  ImportRequest request = import_request(kScripts / "broken" / "unknown_model.sbatch");
  request.job = "bloom-qa";
  EXPECT_EQ(spec_of(import_script(request)).settings.text("model_name_or_path"), "facebook/opt-125m");
}

TEST_F(ImportedText, TheModelsNameSaysTheJob) {
  const auto job_of = [&](const std::string& model) {
    return spec_of(import("#SBATCH -N 1\npython train.py --model_name_or_path " + model + "\n")).job;
  };
  for (const char* model : {"gpt2", "microsoft/Phi-3-mini-4k-instruct", "meta-llama/Llama-3.2-1B", "Qwen/Qwen3-0.6B"}) {
    EXPECT_EQ(job_of(model), "qa") << model;
  }
  EXPECT_EQ(job_of("bigscience/bloom-560m"), "bloom-qa");
  EXPECT_EQ(job_of("/home/sophia/bloom-560m"), "bloom-qa");
}

TEST(ImportScript, OfTwoTrainingsTheUserChoosesOne) {
  ImportRequest request = import_request(kScripts / "broken" / "two_trainings.sbatch");
  EXPECT_EQ(import_refusal(request),
            "two_trainings.sbatch: it starts 2 trainings; choose one with --launch N:\n"
            "  1  two_trainings.sbatch:3  python train.py\n  2  two_trainings.sbatch:4  python train.py");
  request.launch = 2;
  EXPECT_EQ(spec_of(import_script(request)).settings.text("learning_rate"), "2e-05");
  request.launch = 3;
  EXPECT_NE(import_refusal(request).find("--launch 3: there is no such line"), std::string::npos);
}

TEST(ImportScript, AFolderHasOneScript) {
  EXPECT_NE(import_refusal(import_request(kScripts / "broken")).find("files have #SBATCH lines, name one: "),
            std::string::npos);
  EXPECT_NE(import_refusal(import_request(kScripts)).find("no file in this folder has #SBATCH lines"),
            std::string::npos);
}

TEST(ImportScript, NamesAreChecked) {
  ImportRequest request = import_request(kScripts / "single_gpu");
  request.name = "deepspeed/baseline";
  EXPECT_NE(import_refusal(request).find("already an experiment of deepspeed.json"), std::string::npos);
  request.name = "alone";
  EXPECT_NE(import_refusal(request).find("expected FAMILY/NAME"), std::string::npos);
  request.name = "mine/of course";
  EXPECT_NE(import_refusal(request).find("names are made of letters"), std::string::npos);
  request.name = "mine/it";
  request.output = "there/x.json";
  EXPECT_EQ(import_script(request).output, "there/x.json");
}

TEST_F(ImportedText, VariablesOfAnUnexportedNameAreNotSettings) {
  const Import imported = import("BATCH_SIZE=8\nexport LR=1e-4\npython train.py --model_name_or_path bloom\n");
  EXPECT_FALSE(spec_of(imported).settings.has("per_device_train_batch_size"));
  EXPECT_EQ(spec_of(imported).settings.text("learning_rate"), "0.0001");
  EXPECT_EQ(told_about(imported, "BATCH_SIZE"), "left out: it is not exported, so the Python program never saw it");
}

TEST_F(ImportedText, ArgumentsWinOverVariables) {
  const Import imported = import("export LR=1e-4 MODEL_NAME=bloom\npython train.py --lr 2e-4\n");
  EXPECT_EQ(spec_of(imported).settings.text("learning_rate"), "0.0002");
}

TEST_F(ImportedText, TwoNamesOfOneSettingThatDifferAreRefused) {
  const std::string told =
      import_refusal(request("export LR=1e-4 LEARNING_RATE=2e-4\npython train.py --model_name_or_path bloom\n"));
  EXPECT_NE(told.find("LEARNING_RATE in s.sbatch"), std::string::npos) << told;
}

TEST_F(ImportedText, ConditionsChangeNoValueThatIsSet) {
  const Import imported = import(
      "export LR=1e-4\nif [ -n \"$FAST\" ]; then\n  export LR=1e-3\n  export NUM_EPOCHS=1\nfi\n"
      "python train.py --model_name_or_path bloom\n");
  EXPECT_EQ(spec_of(imported).settings.text("learning_rate"), "0.0001");
  EXPECT_EQ(spec_of(imported).settings.text("num_train_epochs"), "1");
}

TEST_F(ImportedText, ValuesOfALoopAreLeftToTheUser) {
  const Import imported =
      import("for lr in 1e-5 2e-5; do\n  python train.py --model_name_or_path bloom --lr $lr\ndone\n");
  EXPECT_EQ(told_about(imported, "--lr"), "computed: $lr changes within a loop");
}

TEST_F(ImportedText, ScriptsThatSrunStartsAreReadToo) {
  std::ofstream(folder_ / "node.sh") << "export NUM_EPOCHS=2\npython train.py --model_name_or_path bloom\n";
  const ExperimentSpec spec =
      spec_of(import("#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-node=4\nsrun bash node.sh\n"));
  EXPECT_EQ(spec.resources.text("gpus_per_node"), "4");
  EXPECT_EQ(spec.settings.text("num_train_epochs"), "2");
  const ExperimentSpec inner =
      spec_of(import("#SBATCH -N 2 --gpus-per-node=4\nsrun bash -c \"torchrun --nnodes 2 --nproc_per_node 4 train.py "
                     "--model_name_or_path bloom\"\n"));
  EXPECT_EQ(inner.resources.text("gpus_per_node"), "4");
}

TEST_F(ImportedText, FilesThatSourceEachOtherEnd) {
  std::ofstream(folder_ / "a.sh") << "source a.sh\n";
  EXPECT_NE(import_refusal(request("source a.sh\npython train.py\n")).find("source each other"), std::string::npos);
}

TEST_F(ImportedText, SaysSoIfOneProcessHoldsSeveralGpus) {
  const Import imported = import("#SBATCH --gpus=4\npython train.py --model_name_or_path bloom\n");
  EXPECT_EQ(spec_of(imported).resources.text("gpus_per_node"), "1");
  EXPECT_EQ(told_about(imported, "python train.py").find("left out: one process for 4 GPUs"), 0U);
}

}  // namespace
}  // namespace tessera
