// Every script of the catalogue, held against committed ones: tests/data/experiments/PRESET/FAMILY.txt. To write them
// anew: TESSERA_WRITE_REFERENCES=1 unit_test --gtest_filter=JobScript.*
#include "experiment/scripts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>

#include "core/command_output.h"
#include "core/file.h"
#include "experiment/standing.h"
#include "jobs/jobs.h"
#include "record/find_runs.h"
#include "support/contains.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

const Program kProgram{"/opt/tessera/bin/tessera", "1.2.3", "0123abc"};

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::vector<ResolvedExperiment> all_resolved(const std::string& preset, Scale scale) {
  const Catalogue catalogue({.preset = preset});
  ResolveOptions options;
  options.preset = preset;
  options.scale = scale;
  options.jobs = job_traits();
  std::vector<ResolvedExperiment> made;
  for (const ExperimentSpec& spec : catalogue.all()) made.push_back(resolve(spec, catalogue, options));
  return made;
}

TEST(JobScript, IsTheCommittedOneForEveryExperiment) {
  const fs::path folder = fs::path(TESSERA_TEST_DATA_FOLDER) / "experiments";
  for (const std::string preset : {"guide", "code"}) {
    std::map<std::string, std::string> by_family;
    for (const ResolvedExperiment& experiment : all_resolved(preset, Scale::kFull)) {
      by_family[with_underscores(experiment.family)] +=
          job_script(experiment, Site(), kProgram, "/runs/" + experiment.name + "/001", false) + "\n";
    }
    ASSERT_EQ(by_family.size(), 4U);
    for (const auto& [family, text] : by_family) {
      const fs::path file = folder / preset / (family + ".txt");
      if (std::getenv("TESSERA_WRITE_REFERENCES") != nullptr) {
        fs::create_directories(file.parent_path());
        write_file_atomically(file, text);
      }
      EXPECT_EQ(read_file(file), text) << file << ": see the head of this test";
    }
  }
}

TEST(JobScript, IsBashAtEveryScale) {
  const fs::path file = fs::path(testing::TempDir()) / "job_script.sh";
  std::string all;
  for (const Scale scale : {Scale::kFull, Scale::kTiny}) {
    for (const ResolvedExperiment& experiment : all_resolved("guide", scale)) {
      all += job_script(experiment, Site(), kProgram, "/runs", true) + local_script(experiment, kProgram);
    }
  }
  write_file_atomically(file, all);
  EXPECT_EQ(successful_output({"bash", "-n", file.string()}, std::chrono::seconds(60)), "");
}

TEST(JobScript, CarriesTheSite) {
  const Site site = parse_site(
      R"({"tessera_site": 1, "partition": "gpu", "account": "me", "constraint": "a100,8gpus", "reservation": "course",
          "modules": ["cuda/13.0"], "interface": "ib1", "gate_environment": {"NCCL_ALGO": "Tree"},
          "sbatch": ["--mail-type=END"], "prefix": "apptainer exec --nv x.sif"})",
      "site.json");
  const Catalogue catalogue({});
  ResolveOptions options;
  options.jobs = job_traits();
  const ResolvedExperiment experiment =
      resolve(*catalogue.find("fsdp/custom_model/multi_node/2_nodes"), catalogue, options);
  const std::string script = job_script(experiment, site, kProgram, "/runs/x", true);
  for (const char* line :
       {"#SBATCH --partition=gpu\n", "#SBATCH --account=me\n", "#SBATCH --constraint=a100,8gpus\n",
        "#SBATCH --reservation=course\n", "#SBATCH --mail-type=END\n", "module load cuda/13.0\n",
        "export NCCL_SOCKET_IFNAME=ib1\n", "  export NCCL_ALGO=Tree\n", " apptainer exec --nv x.sif \"$tessera\" train",
        "--gpus-per-node=8\n",
        "CUDA_VISIBLE_DEVICES=$(cut -d, -f1-1 <<<\"${CUDA_VISIBLE_DEVICES:-0,1,2,3,4,5,6,7}\")  # of 8 reserved\n",
        "wandb sync"}) {
    EXPECT_TRUE(contains(script, line)) << line << "\n" << script;
  }
}

TEST(ScriptParts, QuoteWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("a-b/c_1.0"), "a-b/c_1.0");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(
      successful_output({"bash", "-c", "printf %s " + shell_word("it's $HOME `x` \"y\"")}, std::chrono::seconds(10)),
      "it's $HOME `x` \"y\"");
}

class RunFolder : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(runs_); }
  ResolvedExperiment tiny(const std::string& name) const {
    const Catalogue catalogue({});
    ResolveOptions options;
    options.scale = Scale::kTiny;
    options.jobs = job_traits();
    return resolve(*catalogue.find(name), catalogue, options);
  }
  std::vector<StoredRun> stored() const {
    std::vector<std::string> problems;
    std::vector<StoredRun> found = read_stored_runs(find_run_places({runs_.string()}).experiment_folders, problems);
    EXPECT_TRUE(problems.empty());
    return found;
  }

  const fs::path runs_ = fs::path(testing::TempDir()) / "run_folder_test";
};

TEST_F(RunFolder, IsNeverSharedByTwoWhoTakeOneAtOnce) {
  const ResolvedExperiment experiment = tiny("deepspeed/single_gpu/zero_2");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { make_run_folder(runs_, experiment, kProgram); });
  for (std::thread& thread : threads) thread.join();
  const std::vector<StoredRun> runs = stored();
  ASSERT_EQ(runs.size(), 8U);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(runs[static_cast<std::size_t>(i)].number, i + 1);
}

TEST_F(RunFolder, HoldsEverythingToAskAgain) {
  const ResolvedExperiment experiment = tiny("deepspeed/single_gpu/zero_2");
  make_run_folder(runs_, experiment, kProgram);
  const ResolvedExperiment again = read_resolved_experiment(stored().front());
  EXPECT_EQ(again.train_words(), experiment.train_words());
  EXPECT_EQ(again.files, experiment.files);
  EXPECT_EQ(job_script(again, Site(), kProgram, "/x", false), job_script(experiment, Site(), kProgram, "/x", false));
}

TEST_F(RunFolder, TellsHowARunStands) {
  const fs::path folder = make_run_folder(runs_, tiny("ddp/baseline"), kProgram);
  write_file_atomically(folder / "submitted.json", R"({"job_id": "7"})");
  const auto standing = [&](const Jobs& jobs) { return standing_of(stored().front(), jobs); };
  EXPECT_EQ(standing({{"7", {"PENDING", "Priority", {}}}}).stage, RunStage::kWaiting);
  EXPECT_EQ(standing({{"7", {"RUNNING", "node1", {}}}}).words, "running (node1)");
  EXPECT_EQ(standing({{"7", {"NODE_FAIL", "node[1-2]", {}}}}).words, "node failure (node[1-2])");
  EXPECT_EQ(standing({{"7", {"TIMEOUT", "node1", {}}}}).stage, RunStage::kFailed);
  EXPECT_TRUE(contains(standing({{"7", {"FAILED", "node1", 47}}}).words, "out of memory (47)"));
  EXPECT_TRUE(contains(standing({}).words, "does not know the job"));
  write_file_atomically(folder / "exit_status", "46\n");
  EXPECT_TRUE(contains(standing({}).words, "below the threshold (46)"));
  write_file_atomically(folder / "exit_status", "0\n");
  EXPECT_EQ(standing({}).stage, RunStage::kFinished);
}

TEST(CommandOutput, HasStatusTextsAndALimit) {
  const CommandOutput output = command_output({"bash", "-c", "echo a; echo b >&2; exit 3"}, std::chrono::seconds(10));
  EXPECT_EQ(output.out, "a\n");
  EXPECT_EQ(output.err, "b\n");
  EXPECT_EQ(output.status, 3);
  EXPECT_EQ(command_output({"there-is-no-such-program"}, std::chrono::seconds(10)).status, 127);
  EXPECT_THROW(command_output({"sleep", "30"}, std::chrono::seconds(1)), Error);
}

}  // namespace
}  // namespace tessera
