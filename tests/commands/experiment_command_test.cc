// `tessera experiment` as users start it: here, on CPU ranks, at tiny scale. tests/slurm has it on a cluster.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "core/json.h"
#include "support/program.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

class ExperimentCommand : public testing::Test {
 protected:
  // In a folder of its own: ./experiments and ./runs are looked for.
  Ended experiment(const std::string& words, const std::string& variables = "") const {
    return run_shell(
        fmt::format("cd {} && env -u SLURM_JOB_ID -u DATA_DIR OMP_NUM_THREADS=1 HOME={} {} {} experiment {} 2>&1",
                    folder_.path().string(), folder_.path().string(), variables, binary(), words));
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
  const double loss = record("deepspeed/multi_gpu/2_gpus").at("last_values").at("train_loss").get<double>();
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
  const Ended rerun = experiment("rerun --failed");
  EXPECT_TRUE(contains(rerun.output, "deepspeed/baseline is left alone: it ran here")) << rerun.output;
  EXPECT_TRUE(contains(rerun.output, "nothing is submitted\n")) << rerun.output;
  EXPECT_FALSE(contains(rerun.output, "no run has failed")) << rerun.output;
}

TEST_F(ExperimentCommand, ReportsRunsThatFailedBeforeTheirFirstStep) {
  EXPECT_EQ(experiment("run deepspeed/baseline --scale tiny --train_file none.json").status, 2);
  const std::string failed =
      "failed before it left a record: deepspeed/baseline 001: refused its settings or files (2)";
  const Ended alone = experiment("report");
  EXPECT_EQ(alone.status, 2);
  EXPECT_TRUE(contains(alone.output, failed)) << alone.output;
  std::filesystem::create_directories(folder_ / "runs/ddp/baseline/001/output");
  write_file_atomically(folder_ / "runs/ddp/baseline/001/exit_status", "0\n");
  Json asked = read_json_file(folder_ / "runs/deepspeed/baseline/001/experiment.json");
  asked["experiment"] = "ddp/baseline";
  write_file_atomically(folder_ / "runs/ddp/baseline/001/experiment.json", asked.dump());
  std::filesystem::copy_file(std::string(TESSERA_TEST_DATA_FOLDER) + "/runs/program/baseline/run.json",
                             folder_ / "runs/ddp/baseline/001/output/run.json");
  for (const char* words : {"report", "report deepspeed ddp -o report.html", "collect"}) {
    const Ended ended = experiment(words);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_TRUE(contains(ended.output, "2 runs, 1 finished")) << ended.output;
    EXPECT_TRUE(contains(ended.output, failed)) << ended.output;
    const std::string page =
        read_file(folder_ / (words == std::string("collect") ? "collected/report.html" : "report.html"));
    EXPECT_TRUE(contains(page, "deepspeed/baseline 001"));
    EXPECT_TRUE(contains(page, "refused its settings or files (2)"));
  }
}

TEST_F(ExperimentCommand, StartsNothingThatLacksItsData) {
  std::filesystem::create_directory(folder_ / "bin");
  write_file_atomically(folder_ / "bin/sbatch", "#!/bin/sh\necho 7\n");
  std::filesystem::permissions(folder_ / "bin/sbatch", std::filesystem::perms::owner_all);
  const std::string with_slurm = fmt::format("PATH={}:$PATH", (folder_ / "bin").string());
  const std::string missing = "ddp/baseline: --data_dir FOLDER (or DATA_DIR) is missing\n";
  const Ended refused = experiment("submit ddp/baseline", with_slurm);
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.output, missing)) << refused.output;
  const Ended not_run = experiment("run ddp/baseline");
  EXPECT_EQ(not_run.status, 2);
  EXPECT_TRUE(contains(not_run.output, missing)) << not_run.output;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs")) << "nothing is queued or begun";
  EXPECT_TRUE(contains(experiment("submit deepspeed/baseline", with_slurm).output, "--train_file FILE is missing"));
  const Ended shown = experiment("show ddp/baseline");
  EXPECT_EQ(shown.status, 0);
  EXPECT_TRUE(contains(shown.output, "note: it cannot start yet: --data_dir FOLDER")) << shown.output;
  // The job gets the shell's variables and the site's.
  const Ended submitted = experiment("submit ddp/baseline", with_slurm + " DATA_DIR=/pictures");
  EXPECT_EQ(submitted.status, 0) << submitted.output;
  EXPECT_TRUE(contains(submitted.output, "job 7  ddp/baseline")) << submitted.output;
  EXPECT_TRUE(contains(read_file(folder_ / "runs/ddp/baseline/001/job.sh"), "--data_dir /pictures"));
  write_file_atomically(folder_ / "site.json", R"({"tessera_site": 1, "environment": {"DATA_DIR": "/pictures"}})");
  EXPECT_EQ(experiment("submit ddp/baseline --site site.json", with_slurm).status, 0);
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

TEST_F(ExperimentCommand, TakesANameThatIsNotUtf8) {
  const std::string name = "ddp/baseline --scale tiny --run_name \"$(printf 'n\\377')\"";
  const Ended shown = experiment("show --json " + name);
  EXPECT_EQ(parse_json(shown.output, "the output").at("settings").at("run_name").at("value"), "n\xEF\xBF\xBD");
  const Ended ended = experiment("run " + name + " --max_steps 1 --report_to tensorboard,wandb");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_FALSE(contains(ended.output, "json.exception")) << ended.output;
  EXPECT_EQ(record("ddp/baseline").at("settings").at("run_name").at("value"), "n\xEF\xBF\xBD");
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
