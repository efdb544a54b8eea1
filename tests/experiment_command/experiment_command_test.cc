// `tessera experiment` as users start it: here, on CPU ranks, at tiny scale. tests/slurm has it on a cluster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "comm_test/program.h"
#include "core/file.h"
#include "core/json.h"
#include "data/text/test_folder.h"

namespace tessera {
namespace {

class ExperimentCommand : public testing::Test {
 protected:
  // In a folder of its own: ./experiments and ./runs are looked for.
  Ended experiment(const std::string& words) const {
    return run_shell(fmt::format("cd {} && env -u SLURM_JOB_ID OMP_NUM_THREADS=1 HOME={} {} experiment {} 2>&1",
                                 folder_.path().string(), folder_.path().string(), binary(), words));
  }
  Json record(const std::string& name) const {
    return read_json_file(folder_ / ("runs/" + name + "/001/output/run.json"));
  }

  const TestFolder folder_;
};

TEST_F(ExperimentCommand, RunsOneOfEachFamilyAndFillsTheirTables) {
  const std::string names =
      "ddp/multi_gpu/2_gpus fsdp/bloom/multi_gpu/2_gpus fsdp/custom_model/weak_scaling/2_gpus "
      "deepspeed/multi_gpu/2_gpus";
  const Ended ended = experiment("run " + names + " --scale tiny --max_steps 2");
  ASSERT_EQ(ended.status, 0) << ended.output;
  const Ended status = experiment("status");
  EXPECT_TRUE(contains(status.output, "0 waiting, 0 running, 4 finished, 0 failed")) << status.output;
  for (const char* name : {"ddp/multi_gpu/2_gpus", "fsdp/bloom/multi_gpu/2_gpus", "deepspeed/multi_gpu/2_gpus"}) {
    const Json facts = record(name).at("facts");
    EXPECT_EQ(facts.at("experiment"), name);
    EXPECT_EQ(facts.at("ranks"), 2);
    EXPECT_EQ(facts.at("merge_accumulation"), false);
  }
  const double loss = record("deepspeed/multi_gpu/2_gpus").at("metrics").back().at("train_loss").get<double>();
  const Ended table = experiment("table deepspeed/multi_gpu");
  EXPECT_TRUE(contains(table.output, fmt::format("{:.4f}", loss))) << table.output;
  EXPECT_EQ(experiment("report -o page.html").status, 0);
  EXPECT_TRUE(contains(read_file(folder_ / "page.html"), "fsdp/custom_model/weak_scaling/2_gpus"));
}

TEST_F(ExperimentCommand, KeepsTheStatusOfAFailedRunAndSaysWhatItWas) {
  const Ended ended = experiment("run deepspeed/baseline --scale tiny --train_file none.json");
  EXPECT_EQ(ended.status, 2) << ended.output;
  EXPECT_EQ(read_file(folder_ / "runs/deepspeed/baseline/001/exit_status"), "2\n");
  const Ended status = experiment("status");
  EXPECT_TRUE(contains(status.output, "1 failed")) << status.output;
  EXPECT_TRUE(contains(status.output, "refused its settings or files (2)")) << status.output;
  EXPECT_TRUE(contains(experiment("table deepspeed/baseline").output, "refused its settings")) << "below the table";
}

TEST_F(ExperimentCommand, RefusesWithOneMessage) {
  const auto refusal = [&](const std::string& words) {
    const Ended ended = experiment(words);
    EXPECT_EQ(ended.status, 2) << words << "\n" << ended.output;
    EXPECT_EQ(std::count(ended.output.begin(), ended.output.end(), '\n'), 1) << ended.output;
    return ended.output;
  };
  EXPECT_TRUE(contains(refusal("rnu ddp"), "unknown verb 'rnu', did you mean 'run'?"));
  EXPECT_TRUE(contains(refusal(""), "the verb comes first"));
  EXPECT_TRUE(contains(refusal("show ddp/basline"), "did you mean 'ddp/baseline'?"));
  EXPECT_TRUE(contains(refusal("run"), "expected: tessera experiment run NAME..."));
  EXPECT_TRUE(contains(refusal("show ddp/baseline --learning_rat 1"), "--learning_rate"));
  EXPECT_TRUE(contains(refusal("show ddp/baseline --preset cod"), "presets: guide, code"));
  EXPECT_TRUE(contains(refusal("show ddp --nodes 0"), "nodes = '0': expected a whole number from 1 to 30000"));
  EXPECT_TRUE(contains(refusal("status nothing"), "no run of nothing is in runs"));
  EXPECT_TRUE(contains(refusal("list --jsn"), "unknown option --jsn, did you mean --json?"));
  EXPECT_TRUE(contains(refusal("cancel ddp --dry_run"), "--dry_run is an option of"));
  EXPECT_TRUE(contains(refusal("show ddp/baseline --output_dir x"), "a run's output lies in its own folder"));
  EXPECT_TRUE(contains(refusal("rerun"), "expected: tessera experiment rerun NAME..."));
  EXPECT_TRUE(contains(refusal("show ddp/baseline --site none.json"), "none.json"));
}

TEST_F(ExperimentCommand, ShowsWhatWouldRunWithoutRunningIt) {
  const Ended ended = experiment("submit fsdp/custom_model/multi_node/2_nodes --dry_run");
  EXPECT_EQ(ended.status, 0);
  EXPECT_TRUE(contains(ended.output, "#SBATCH --nodes=2\n")) << ended.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
  const Ended shown = experiment("show deepspeed/baseline --learning_rate 1e-3 --json");
  const Json json = parse_json(shown.output, "the output");
  EXPECT_EQ(json.at("settings").at("learning_rate").at("from"), "command line");
}

}  // namespace
}  // namespace tessera
