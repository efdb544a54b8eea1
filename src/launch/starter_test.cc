#include "launch/starter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "launch/run_folder.h"

namespace tessera {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(Starter, TellsMpirunWhatIsNeededAndNoMore) {
  StartRequest request;
  request.runner = {"/opt/tessera", "__minder"};
  RankOrder order;
  order.folder = "/tmp/run";
  order.num_local_ranks = 4;
  request.more_ranks_than_cpus = true;
  const auto crowded = mpirun_arguments("/usr/bin/mpirun", order, request, true);
  EXPECT_EQ(crowded.front(), "/usr/bin/mpirun");
  EXPECT_TRUE(has(crowded, "--oversubscribe"));
  EXPECT_TRUE(has(crowded, "--allow-run-as-root"));
  EXPECT_TRUE(has(crowded, "mpi_yield_when_idle"));
  EXPECT_EQ(std::vector<std::string>(crowded.end() - 5, crowded.end()),
            (std::vector<std::string>{"-np", "4", "/opt/tessera", "__minder", "/tmp/run"}));
  request.more_ranks_than_cpus = false;
  const auto roomy = mpirun_arguments("/usr/bin/mpirun", order, request, false);
  EXPECT_FALSE(has(roomy, "--allow-run-as-root"));
  EXPECT_FALSE(has(roomy, "mpi_yield_when_idle"));
}

TEST(Starter, HidesAnOuterJobButKeepsSettings) {
  const Environment outer({{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_MCA_orte_hnp_uri", "x"},
                           {"OMPI_MCA_ess_base_jobid", "1"},
                           {"OMPI_MCA_btl", "tcp,self"},
                           {"PMIX_RANK", "1"},
                           {"PMIX_MCA_gds", "hash"},
                           {"SLURM_JOB_ID", "17"},
                           {"HOME", "/root"}});
  EXPECT_EQ(
      without_outer_job(outer, true).all(),
      (std::map<std::string, std::string>{{"HOME", "/root"}, {"OMPI_MCA_btl", "tcp,self"}, {"PMIX_MCA_gds", "hash"}}));
  EXPECT_EQ(without_outer_job(outer, false).find("SLURM_JOB_ID"), "17");
  EXPECT_EQ(variables_to_restore(outer, Starter::kMpirun),
            (std::map<std::string, std::string>{{"SLURM_JOB_ID", "17"}}));
  EXPECT_TRUE(variables_to_restore(outer, Starter::kFork).empty());
}

TEST(Starter, KeepsAUsersOrteSettingsOutsideOfMpirun) {
  const Environment plain({{"OMPI_MCA_orte_tmpdir_base", "/scratch"}});
  EXPECT_EQ(without_outer_job(plain, true).all(), plain.all());
}

TEST(Starter, FallsBackToTheExecutableItself) {
  EXPECT_EQ(runner_command("/nowhere/tessera"), (std::vector<std::string>{"/nowhere/tessera", "__minder"}));
}

TEST(RankOrder, NumbersRanksNodeByNode) {
  RankOrder order;
  order.folder = "/tmp/run";
  order.num_nodes = 3;
  order.node_rank = 2;
  order.num_local_ranks = 4;
  order.master_addr = "n0";
  order.master_port = 1234;
  order.restart_count = 1;
  order.log_dir = "out";
  order.environment = {{"OMP_NUM_THREADS", "2"}};
  const auto variables = rank_environment(order, 1);
  EXPECT_EQ(variables.at("RANK"), "9");
  EXPECT_EQ(variables.at("WORLD_SIZE"), "12");
  EXPECT_EQ(variables.at("LOCAL_RANK"), "1");
  EXPECT_EQ(variables.at("LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(variables.at("GROUP_RANK"), "2");
  EXPECT_EQ(variables.at("MASTER_ADDR"), "n0");
  EXPECT_EQ(variables.at("MASTER_PORT"), "1234");
  EXPECT_EQ(variables.at("TORCHELASTIC_RESTART_COUNT"), "1");
  EXPECT_EQ(variables.at("OMP_NUM_THREADS"), "2");
  EXPECT_EQ(log_path(order, 1), "out/rank-9.log");
}

}  // namespace
}  // namespace tessera
