// `tessera env` on this machine, whatever it is, and in environments that are broken.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/json.h"
#include "core/version.h"
#include "support/program.h"

namespace tessera {
namespace {

// `tessera env --json` in an environment of only these variables. Libraries complain about some on standard error.
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
        "Slurm allocation\n", "Rank variables\n", "Variables that are read\n", "Verdict\n"}) {
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
  EXPECT_TRUE(contains(problems, "NCCL_SOCKET_IFNAME=ib77 matches no interface here\n")) << problems;
  EXPECT_TRUE(contains(problems, "MASTER_ADDR=host.invalid cannot be resolved")) << problems;
  EXPECT_TRUE(contains(problems, "10000 ranks would share ")) << problems;
  EXPECT_TRUE(!json["gpus"].empty() || contains(problems, "CPU flavour")) << problems;
  EXPECT_FALSE(contains(problems_of(env_of("NCCL_SOCKET_IFNAME=^lo,docker")), "matches no interface"));
}

TEST(Env, ShowsWhatTheRankVariablesMean) {
  EXPECT_EQ(env_of("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4")["ranks"]["meaning"], "rank 1 of 4 (Open MPI)");
  const Json contradiction = env_of("RANK=0 WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4");
  EXPECT_TRUE(contains(contradiction["ranks"]["contradiction"], "RANK=0"));
  EXPECT_TRUE(contains(problems_of(contradiction), "the rank variables are invalid"));
}

TEST(Env, ShowsSlurmsAllocation) {
  const Json json = env_of("SLURM_JOB_ID=7 SLURM_NNODES=3 SLURM_JOB_NODELIST='gpu[1-2,7]' SLURM_NTASKS_PER_NODE=2");
  EXPECT_EQ(json["slurm"]["variables"]["SLURM_JOB_ID"], "7");
  EXPECT_EQ(json["slurm"]["nodes"], (std::vector<std::string>{"gpu1", "gpu2", "gpu7"}));
  EXPECT_EQ(json["ranks"]["here"], 2);
}

TEST(Env, NeverShowsSecrets) {
  const Ended ended = run_shell(fmt::format(
      "export WANDB_API_KEY=hunter2 SLURM_JWT=hunter2 HF_TOKEN=hunter2 NCCL_ALGO=Ring OMPI_MCA_some_token=hunter2; {} "
      "env; {} env --json",
      binary(), binary()));
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_TRUE(contains(ended.output, "NCCL_ALGO=Ring")) << ended.output;  // both forms were printed
  EXPECT_TRUE(contains(ended.output, "\"NCCL_ALGO\": \"Ring\"")) << ended.output;
  EXPECT_FALSE(contains(ended.output, "hunter2")) << ended.output;
}

TEST(Env, ShowsEveryVariableOfTheLibraries) {
  const Json variables = env_of(
      "NCCL_IB_TC=1 TORCH_NCCL_NAN_CHECK=0 OMP_PLACES=cores UCX_TLS=tcp GLOO_SOCKET_IFNAME=lo OTHER=1")["variables"];
  const std::map<std::string, std::string> expected = {{"GLOO_SOCKET_IFNAME", "lo"},
                                                       {"NCCL_IB_TC", "1"},
                                                       {"OMP_PLACES", "cores"},
                                                       {"TORCH_NCCL_NAN_CHECK", "0"},
                                                       {"UCX_TLS", "tcp"}};
  EXPECT_EQ((variables.get<std::map<std::string, std::string>>()), expected);
}

TEST(Env, NamesVariablesThatCannotBeMeantSo) {
  const std::string problems =
      problems_of(env_of("NCCL_DEBGU=INFO MASTER_PORT=http CUDA_VISIBLE_DEVICES=first WORLD_SIZE=4"));
  EXPECT_TRUE(contains(problems, "no known program reads NCCL_DEBGU\n")) << problems;
  EXPECT_TRUE(contains(problems, "MASTER_PORT=http is not a port\n")) << problems;
  EXPECT_TRUE(contains(problems, "CUDA_VISIBLE_DEVICES=first: 'first' is not a GPU number\n")) << problems;
  EXPECT_TRUE(contains(problems, "the rank variables are invalid\n")) << problems;
}

TEST(Env, AWrongLogLevelIsAProblemNotTheEnd) {
  EXPECT_TRUE(contains(problems_of(env_of("TESSERA_LOG=loud")), "TESSERA_LOG=loud is not a log level\n"));
}

TEST(Env, ABrokenEnvironmentIsShownNotDiedOf) {
  struct Broken {
    const char* variables;
    const char* problem;  // that must be reported; empty: not checked
  };
  const Broken environments[] = {
      {"RANK=x WORLD_SIZE=-1", "the rank variables are invalid"},
      {"MASTER_PORT=99999 RANK=0 WORLD_SIZE=2", "the rank variables are invalid"},
      {"SLURM_JOB_NODELIST='gpu[1-' SLURM_JOB_ID=x SLURM_NTASKS_PER_NODE='2(x3)'", "Slurm's node list cannot be read"},
      {"OMP_NUM_THREADS=many CUDA_VISIBLE_DEVICES=nonsense", "OMP_NUM_THREADS=many is not a number of threads"},
      {"NCCL_IB_HCA==,,: MASTER_ADDR=\"$(printf 'a\\377b')\"", "NCCL_IB_HCA==,,: matches no InfiniBand device here"},
      {"HOME=/nonexistent TMPDIR=/nonexistent LANG=xx_XX", ""},
  };
  for (const auto& [variables, problem] : environments) {
    const std::string problems = problems_of(env_of(variables));
    EXPECT_TRUE(contains(problems, problem)) << variables << "\n" << problems;
    const Ended text = run_shell(fmt::format("env -i {} {} env", variables, binary()));
    EXPECT_EQ(text.status, 0) << variables << "\n" << text.output;
    EXPECT_TRUE(contains(text.output, "Verdict\n")) << variables << "\n" << text.output;
  }
  const Ended pathless = run_shell(fmt::format("env -i PATH=/nonexistent {} env", binary()));
  EXPECT_EQ(pathless.status, 0) << pathless.output;
  EXPECT_TRUE(contains(pathless.output, "no mpirun in PATH")) << pathless.output;
}

TEST(Env, BadArgumentsAreRefused) {
  const std::pair<const char*, const char*> refusals[] = {
      {"--jsno", "did you mean --json?"},
      {"--nproc 4", "did you mean --nproc_per_node?"},
      {"--nproc_per_node -1", "--nproc_per_node=-1 (command line): expected a whole number from 0 to 1000000"},
      {"all", "unexpected word 'all'"}};
  for (const auto& [arguments, message] : refusals) {
    const Ended ended = run_tessera(fmt::format("env {}", arguments));
    EXPECT_EQ(ended.status, 2) << arguments << "\n" << ended.output;
    EXPECT_TRUE(contains(ended.output, message)) << arguments << "\n" << ended.output;
  }
}

}  // namespace
}  // namespace tessera
