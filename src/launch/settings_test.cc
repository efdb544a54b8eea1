#include "launch/settings.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/contains.h"

namespace tessera {
namespace {

HostFacts host_with(int num_cpus, int num_gpus = 0) {
  HostFacts host;
  host.num_gpus = num_gpus;
  for (int i = 0; i < num_cpus; ++i) host.cpus.push_back({i, 0, i});
  return host;
}

LaunchPlan plan_of(std::vector<std::string> arguments, const HostFacts& host = host_with(4)) {
  LaunchSettings settings;
  Schema schema("tessera launch", "test");
  declare(schema, settings);
  arguments.insert(arguments.end(), {"sh", "-c", "true"});
  schema.read_command_line(arguments);
  return make_plan(settings, host, Environment(), "/opt/tessera", {"comm-test", "env"});
}

std::string refusal(const std::vector<std::string>& arguments, const HostFacts& host = host_with(4)) {
  try {
    plan_of(arguments, host);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(LaunchSettings, CountsRanksByTheHost) {
  EXPECT_EQ(plan_of({}, host_with(8)).num_local_ranks, 4);
  EXPECT_EQ(plan_of({}, host_with(1)).num_local_ranks, 1);
  EXPECT_EQ(plan_of({}, host_with(8, 2)).num_local_ranks, 2);
  EXPECT_EQ(plan_of({"--nproc_per_node", "cpu"}, host_with(8, 2)).num_local_ranks, 8);
  EXPECT_EQ(plan_of({"--nproc_per_node=gpu"}, host_with(8, 2)).num_local_ranks, 2);
  EXPECT_EQ(plan_of({"--nproc-per-node", "3"}).num_local_ranks, 3);
}

TEST(LaunchSettings, SaysHowManyRanksStartWhereTorchrunStartsOne) {
  EXPECT_EQ(remark_on_count(plan_of({}, host_with(8, 2)), host_with(8, 2)),
            "starting 2 ranks on this node, one per GPU, where torchrun starts one; --nproc_per_node says how many");
  EXPECT_TRUE(contains(remark_on_count(plan_of({}, host_with(8)), host_with(8)), "4 ranks on this node, one per two "));
  EXPECT_EQ(remark_on_count(plan_of({}, host_with(8, 1)), host_with(8, 1)), "");
}

TEST(LaunchSettings, RefusesNumbersOfRanksThatMeanNothing) {
  EXPECT_TRUE(contains(refusal({"--nproc_per_node", "0"}), "at least 1"));
  EXPECT_TRUE(contains(refusal({"--nproc_per_node", "two"}), "'two'"));
  EXPECT_TRUE(contains(refusal({"--nproc_per_node", "gpu"}), "no NVIDIA GPU"));
  EXPECT_TRUE(contains(refusal({"--nnodes", "0"}), "--nnodes"));
  EXPECT_TRUE(contains(refusal({"--nnodes", "1:4"}), "MIN:MAX"));
  EXPECT_EQ(plan_of({"--nnodes", "1:1"}).num_nodes, 1);
  EXPECT_TRUE(contains(refusal({"--nproc_per_node", "10001"}), "at most 10000"));
  EXPECT_TRUE(contains(refusal({"--nnodes", "2", "--standalone"}), "--standalone"));
}

TEST(LaunchSettings, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(contains(refusal({"--nproc_per_nod", "2"}), "nproc_per_node"));
  EXPECT_TRUE(contains(refusal({"--rdzv_backend", "etcd"}), "c10d"));
}

TEST(LaunchSettings, ChoosesTheStarter) {
  EXPECT_EQ(plan_of({}).starter, Starter::kMpirun);
  EXPECT_EQ(plan_of({}, host_with(4, 1)).starter, Starter::kFork);
  EXPECT_EQ(plan_of({"--nnodes", "2", "--node_rank", "1", "--master_addr", "n0"}).starter, Starter::kFork);
  EXPECT_TRUE(contains(refusal({"--nnodes", "2", "--node_rank", "1", "--master_addr", "n0", "--starter", "mpirun"}),
                       "one host"));
}

TEST(LaunchSettings, FindsWhereNodesMeet) {
  const LaunchPlan plan = plan_of({"--nnodes=2", "--node_rank=1", "--rdzv_endpoint=n0:1234"});
  EXPECT_EQ(plan.head_host, "n0");
  EXPECT_EQ(plan.head_port, 1234);
  EXPECT_EQ(plan_of({"--nnodes=2", "--node_rank=1", "--rdzv_endpoint=n0"}).head_port, 29500);
  EXPECT_EQ(plan_of({"--nnodes=2", "--node_rank=1", "--rdzv_endpoint=[::1]:7"}).head_host, "::1");
  EXPECT_TRUE(contains(refusal({"--nnodes=2", "--node_rank=1"}), "--rdzv_endpoint"));
  EXPECT_TRUE(contains(refusal({"--nnodes=2", "--rdzv_endpoint=n0"}), "--node_rank"));
  EXPECT_TRUE(contains(refusal({"--nnodes=2", "--node_rank=2", "--rdzv_endpoint=n0"}), "0 to 1"));
  EXPECT_TRUE(contains(refusal({"--rdzv_endpoint=n0:99999"}), "65535"));
  EXPECT_TRUE(contains(refusal({"--rdzv_endpoint=n0:1", "--master_addr=n1"}), "two rendezvous addresses"));
  EXPECT_TRUE(contains(refusal({"--rdzv_endpoint=n0:1", "--master_port=2"}), "n0:1 and --master_port 2 name"));
  EXPECT_EQ(plan_of({"--standalone", "--master_addr=bad.invalid", "--master_port=9"}).head_host, "");
}

TEST(LaunchSettings, KnowsTorchrunsHabits) {
  EXPECT_TRUE(plan_of({}).remarks.empty());
  EXPECT_EQ(plan_of({"--no_python"}).remarks, std::vector<std::string>{"--no_python changes nothing here"});
  EXPECT_EQ(plan_of({"--role", "trainer", "--monitor_interval=5"}).remarks,
            std::vector<std::string>{"--role, --monitor_interval change nothing here"});
  EXPECT_TRUE(contains(refusal({"-m"}), "python -m"));
  EXPECT_TRUE(contains(refusal({"--module"}), "python -m"));
  EXPECT_TRUE(contains(refusal({"-r", "3"}), "--log_dir"));
  EXPECT_TRUE(contains(refusal({"--redirects", "3"}), "--log_dir"));
  EXPECT_TRUE(contains(refusal({"--rdzv_conf", "timeout=5"}), "--start_timeout"));
  EXPECT_TRUE(contains(refusal({"--local_ranks_filter", "0"}), "--log_dir"));
}

TEST(LaunchSettings, ReadsTorchrunsNumbersForTee) {
  using Words = std::vector<std::string>;
  const auto plain = [](const Words& arguments) {
    LaunchSettings settings;
    Schema schema("tessera launch", "test");
    declare(schema, settings);
    schema.read_command_line(arguments);
    return with_plain_tee(arguments, settings);
  };
  EXPECT_EQ(plain({"--tee", "3", "--nnodes=1", "sh", "3"}), (Words{"--tee=true", "--nnodes=1", "sh", "3"}));
  EXPECT_EQ(plain({"-t", "2", "sh"}), (Words{"--tee=true", "sh"}));
  EXPECT_EQ(plain({"--tee", "0:3,1:0", "sh"}), (Words{"--tee=true", "sh"}));
  EXPECT_EQ(plain({"--tee", "0:0", "sh"}), (Words{"--tee=false", "sh"}));
  EXPECT_EQ(plain({"--tee", "4", "sh"}), std::nullopt);
  EXPECT_EQ(plain({"--tee", "sh", "--tee", "3"}), std::nullopt);
  EXPECT_EQ(plain({"--tee", "1", "sh"}), std::nullopt);  // read as a boolean
}

// `tessera launch ARGUMENTS comm_test WORDS`
LaunchPlan plan_for(std::vector<std::string> arguments, int num_gpus, const std::vector<std::string>& words = {}) {
  LaunchSettings settings;
  Schema schema("tessera launch", "test");
  declare(schema, settings);
  arguments.push_back("comm_test");
  arguments.insert(arguments.end(), words.begin(), words.end());
  schema.read_command_line(arguments);
  return make_plan(settings, host_with(4, num_gpus), Environment(), "/opt/tessera", {"comm-test"});
}

TEST(LaunchSettings, TellsOwnSubcommandsThatCouldNotTalk) {
  const std::vector<std::string> two_nodes = {"--nnodes=2", "--node_rank=0", "--master_addr=n0"};
  EXPECT_EQ(plan_for({}, 0).command, (std::vector<std::string>{"/opt/tessera", "comm-test"}));
  EXPECT_TRUE(plan_for({}, 0).remarks.empty());
  EXPECT_EQ(plan_for(two_nodes, 1).num_nodes, 2);
  try {
    plan_for(two_nodes, 0);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_TRUE(contains(error.what(), "srun --mpi=pmix tessera comm-test")) << error.what();
  }
  EXPECT_EQ(plan_for({}, 1).starter, Starter::kFork);
  EXPECT_EQ(plan_for({"--starter=fork"}, 0).starter, Starter::kFork);  // its ranks report what is missing
}

TEST(LaunchSettings, RanksOfOursOnTheCpuUseMpiWhateverTheHostHas) {
  EXPECT_EQ(plan_for({}, 2, {"--device", "cpu"}).starter, Starter::kMpirun);
  EXPECT_EQ(plan_for({}, 2, {"--device=cpu"}).starter, Starter::kMpirun);
  EXPECT_EQ(plan_for({}, 2, {"-n", "5", "--backend", "mpi"}).starter, Starter::kMpirun);
  EXPECT_EQ(plan_for({}, 2, {"--backend=mpi"}).starter, Starter::kMpirun);
  EXPECT_EQ(plan_for({}, 2, {"--device", "cuda"}).starter, Starter::kFork);
}

TEST(LaunchSettings, LeavesTheProgramsOwnFlagsAlone) {
  const LaunchPlan plan = plan_of({"--nproc_per_node", "2"});
  EXPECT_EQ(plan.command.size(), 3U);
  EXPECT_TRUE(plan.command[0].ends_with("/sh"));
  EXPECT_EQ(plan.command[1], "-c");
}

TEST(LaunchSettings, RunsItsOwnSubcommandsAndNamesMissingPrograms) {
  LaunchSettings settings;
  Schema schema("tessera launch", "test");
  declare(schema, settings);
  settings.command = {"comm-test", "-b", "1K"};
  const auto make = [&] { return make_plan(settings, host_with(2), Environment(), "/opt/tessera", {"comm-test"}); };
  EXPECT_EQ(make().command, (std::vector<std::string>{"/opt/tessera", "comm-test", "-b", "1K"}));
  for (const auto& [word, expected] : std::vector<std::pair<std::string, std::string>>{
           {"com-test", "did you mean the subcommand 'comm-test'"}, {"./missing", "'./missing'"}, {"/tmp", "folder"}}) {
    settings.command = {word};
    try {
      make();
      FAIL() << word;
    } catch (const UsageError& error) {
      EXPECT_TRUE(contains(error.what(), expected)) << error.what();
    }
  }
}

TEST(HostFacts, ReadsCudaVisibleDevicesAsCudaDoes) {
  const auto visible = [](const std::string& text) {
    return num_visible_gpus(4, Environment({{"CUDA_VISIBLE_DEVICES", text}}));
  };
  EXPECT_EQ(num_visible_gpus(4, Environment()), 4);
  EXPECT_EQ(visible("0,2"), 2);
  EXPECT_EQ(visible(""), 0);
  EXPECT_EQ(visible("-1"), 0);
  EXPECT_EQ(visible("1,-1,2"), 1);
  EXPECT_EQ(visible("GPU-8f3a,GPU-77aa"), 2);
  EXPECT_EQ(num_visible_gpus(0, Environment({{"CUDA_VISIBLE_DEVICES", "0,1"}})), 0);
}

}  // namespace
}  // namespace tessera
