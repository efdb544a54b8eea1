// `tessera env` on this machine, whatever it is, and in environments that are broken.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "comm_test/program.h"
#include "core/json.h"
#include "core/version.h"

namespace tessera {
namespace {

// `tessera env --json` in an environment of these variables alone. Libraries complain of some on standard error.
Json env_of(const std::string& variables, const std::string& arguments = "") {
  const Ended ended =
      run_shell(fmt::format("env -i PATH=\"$PATH\" {} {} env --json {} 2>/dev/null", variables, binary(), arguments));
  EXPECT_EQ(ended.status, 0) << ended.output;
  return parse_json(ended.output, "tessera env --json");
}

std::string problems_of(const Json& json) {
  std::string text;
  for (const Json& problem : json["problems"]) {
    EXPECT_FALSE(problem["advice"].get<std::string>().empty());
    text += problem["problem"].get<std::string>() + "\n";
  }
  return text;
}

TEST(Env, ShowsTheMachineInTextAndInJson) {
  const Ended ended = run_tessera("env");
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (const char* part :
       {"Host\n", "operating system", "kernel", "CPU", "memory", "Software\n", "torch", "MPI", "GPUs\n", "Network\n",
        "Slurm allocation\n", "Rank variables\n", "Variables that are heeded\n", "Verdict\n"}) {
    EXPECT_TRUE(contains(ended.output, part)) << part << " is not in\n" << ended.output;
  }
  const Json json = env_of("");
  EXPECT_EQ(json["software"]["tessera"], kVersion);
  EXPECT_TRUE(json["software"]["torch"].get<std::string>().starts_with("2."));
  EXPECT_TRUE(json["host"]["memory"]["total_bytes"].is_number());
  EXPECT_TRUE(json["host"]["cpu"]["usable_processors"].is_number());
  EXPECT_EQ(json["ranks"]["meaning"].get<std::string>().substr(0, 11), "rank 0 of 1");
}

TEST(Env, NamesEachProblem) {
  const Json json = env_of("NCCL_SOCKET_IFNAME=ib77 MASTER_ADDR=host.invalid", "--nproc_per_node 10000");
  const std::string problems = problems_of(json);
  EXPECT_TRUE(contains(problems, "NCCL_SOCKET_IFNAME=ib77 names no interface here\n")) << problems;
  EXPECT_TRUE(contains(problems, "MASTER_ADDR=host.invalid cannot be resolved")) << problems;
  EXPECT_TRUE(contains(problems, "10000 ranks would share ")) << problems;
  EXPECT_TRUE(!json["gpus"].empty() || contains(problems, "CPU flavour")) << problems;
  EXPECT_FALSE(contains(problems_of(env_of("NCCL_SOCKET_IFNAME=^lo,docker")), "names no interface"));
}

TEST(Env, ShowsWhatTheRankVariablesMean) {
  EXPECT_EQ(env_of("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4")["ranks"]["meaning"], "rank 1 of 4 (Open MPI)");
  const Json contradiction = env_of("RANK=0 WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4");
  EXPECT_TRUE(contains(contradiction["ranks"]["contradiction"], "RANK=0"));
  EXPECT_TRUE(contains(problems_of(contradiction), "the rank variables cannot be right"));
}

TEST(Env, ShowsSlurmsAllocation) {
  const Json json = env_of("SLURM_JOB_ID=7 SLURM_NNODES=3 SLURM_JOB_NODELIST='gpu[1-2,7]' SLURM_NTASKS_PER_NODE=2");
  EXPECT_EQ(json["slurm"]["variables"]["SLURM_JOB_ID"], "7");
  EXPECT_EQ(json["slurm"]["nodes"], (std::vector<std::string>{"gpu1", "gpu2", "gpu7"}));
  EXPECT_EQ(json["ranks"]["here"], 2);
}

TEST(Env, NeverShowsSecrets) {
  const Ended ended = run_shell(fmt::format(
      "export WANDB_API_KEY=hunter2 SLURM_JWT=hunter2 HF_TOKEN=hunter2; {} env; {} env --json", binary(), binary()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_FALSE(contains(ended.output, "hunter2")) << ended.output;
}

TEST(Env, ABrokenEnvironmentIsShownNotDiedOf) {
  const char* environments[] = {
      "RANK=x WORLD_SIZE=-1",
      "MASTER_PORT=99999 RANK=0 WORLD_SIZE=2",
      "SLURM_JOB_NODELIST='gpu[1-' SLURM_JOB_ID=x SLURM_NTASKS_PER_NODE='2(x3)'",
      "OMP_NUM_THREADS=many CUDA_VISIBLE_DEVICES=nonsense",
      "NCCL_SOCKET_IFNAME=^ NCCL_IB_HCA==,,: MASTER_ADDR=\"$(printf 'a\\377b')\"",
      "HOME=/nonexistent TMPDIR=/nonexistent LANG=xx_XX",
  };
  for (const char* variables : environments) {
    const Json json = env_of(variables);
    EXPECT_TRUE(json["problems"].is_array()) << variables;
    const Ended text = run_shell(fmt::format("env -i {} {} env", variables, binary()));
    EXPECT_EQ(text.status, 0) << variables << "\n" << text.output;
    EXPECT_TRUE(contains(text.output, "Verdict\n")) << variables << "\n" << text.output;
  }
  const Ended pathless = run_shell(fmt::format("env -i PATH=/nonexistent {} env", binary()));
  EXPECT_EQ(pathless.status, 0) << pathless.output;
  EXPECT_TRUE(contains(pathless.output, "no mpirun in PATH")) << pathless.output;
}

TEST(Env, BadArgumentsAreRefused) {
  EXPECT_EQ(run_tessera("env --jsno").status, 2);
  EXPECT_EQ(run_tessera("env --nproc_per_node -1").status, 2);
  EXPECT_EQ(run_tessera("env all").status, 2);
}

}  // namespace
}  // namespace tessera
