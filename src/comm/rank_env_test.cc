#include "comm/rank_env.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/contains.h"

namespace tessera {
namespace {

using Variables = std::map<std::string, std::string>;

RankEnv discover(Variables variables) {
  return discover_rank(Environment(std::move(variables)));
}

std::string refusal(Variables variables) {
  try {
    discover(std::move(variables));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(RankEnv, IsOneRankAloneWhereNobodySaysOtherwise) {
  const RankEnv self = discover({});
  EXPECT_EQ(self.rank, 0);
  EXPECT_EQ(self.world_size, 1);
  EXPECT_FALSE(self.launched);
}

TEST(RankEnv, ReadsTorchrunsVariables) {
  const RankEnv self = discover({{"RANK", "3"},
                                 {"WORLD_SIZE", "4"},
                                 {"LOCAL_RANK", "1"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"GROUP_RANK", "1"},
                                 {"MASTER_ADDR", "head"},
                                 {"MASTER_PORT", "29500"}});
  EXPECT_EQ(self.rank, 3);
  EXPECT_EQ(self.world_size, 4);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.node_rank, 1);
  EXPECT_EQ(self.master_addr, "head");
  EXPECT_EQ(self.master_port, 29500);
}

TEST(RankEnv, ReadsSlurmsVariablesOfATask) {
  const RankEnv self = discover({{"SLURM_PROCID", "2"},
                                 {"SLURM_NTASKS", "4"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_NODEID", "1"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "1,3(x2)"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"SLURM_JOB_ID", "77"},
                                 {"SLURM_JOB_NODELIST", "gpu[03-04]"},
                                 {"PMIX_RANK", "2"}});
  EXPECT_EQ(self.rank, 2);
  EXPECT_EQ(self.node_rank, 1);
  EXPECT_EQ(self.local_size, 3);
  EXPECT_EQ(self.master_addr, "gpu03");
  EXPECT_TRUE(self.master_port.has_value());
  EXPECT_EQ(self.job_id, "slurm-77.0");
}

TEST(RankEnv, TakesABatchScriptForNoRank) {
  EXPECT_EQ(discover({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}}).world_size, 1);
}

TEST(RankEnv, ReadsOpenMpisVariablesEvenInsideAnAllocation) {
  const RankEnv self = discover({{"OMPI_COMM_WORLD_RANK", "1"},
                                 {"OMPI_COMM_WORLD_SIZE", "2"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_NTASKS", "1"},
                                 {"SLURM_STEP_ID", "3"}});
  EXPECT_EQ(self.rank, 1);
  EXPECT_EQ(self.local_size, 2);
}

TEST(RankEnv, LaunchersVariablesBeatSlurmsAndMpis) {
  const RankEnv self = discover({{"TESSERA_LAUNCHED", "1"},
                                 {"RANK", "1"},
                                 {"WORLD_SIZE", "2"},
                                 {"LOCAL_RANK", "1"},
                                 {"SLURM_PROCID", "0"},
                                 {"SLURM_NTASKS", "8"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"OMPI_COMM_WORLD_RANK", "0"},
                                 {"OMPI_COMM_WORLD_SIZE", "5"}});
  EXPECT_EQ(self.rank, 1);
  EXPECT_EQ(self.world_size, 2);
  EXPECT_TRUE(self.launched);
}

TEST(RankEnv, RefusesContradictionsShowingBothSides) {
  // The users' habit: WORLD_SIZE exported as the number of nodes.
  const std::string text =
      refusal({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}, {"WORLD_SIZE", "2"}});
  EXPECT_TRUE(contains(text, "WORLD_SIZE=2") && contains(text, "SLURM_NTASKS=4") && contains(text, "unset WORLD_SIZE"))
      << text;
  EXPECT_TRUE(
      contains(refusal({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"RANK", "0"}}), "RANK=0"));
  EXPECT_TRUE(
      contains(refusal({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}, {"PMIX_RANK", "0"}}),
               "PMIX_RANK=0"));
}

TEST(RankEnv, RefusesARankWithoutANumberOfRanks) {
  EXPECT_TRUE(contains(refusal({{"PMIX_RANK", "1"}}), "nothing says how many ranks"));
}

TEST(RankEnv, RefusesHalfOfTorchrunsVariablesAndValuesThatAreNoRanks) {
  EXPECT_TRUE(contains(refusal({{"RANK", "1"}}), "WORLD_SIZE is not"));
  EXPECT_TRUE(contains(refusal({{"WORLD_SIZE", "4"}}), "RANK is not"));
  EXPECT_TRUE(contains(refusal({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), "rank 4 of 4"));
  EXPECT_TRUE(contains(refusal({{"RANK", "one"}, {"WORLD_SIZE", "4"}}), "RANK"));
  EXPECT_TRUE(contains(refusal({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "99999"}}), "1 to 65535"));
  EXPECT_TRUE(contains(refusal({{"TESSERA_LAUNCHED", "1"}}), "RANK"));
}

TEST(Nodelist, ExpandsSlurmsForms) {
  using Hosts = std::vector<std::string>;
  EXPECT_EQ(expand_nodelist("login"), Hosts{"login"});
  EXPECT_EQ(expand_nodelist("gpu[001-003,7],login"), (Hosts{"gpu001", "gpu002", "gpu003", "gpu7", "login"}));
  EXPECT_EQ(expand_nodelist("r[1-2]n[08-09]"), (Hosts{"r1n08", "r1n09", "r2n08", "r2n09"}));
  EXPECT_EQ(expand_nodelist("a[1-2]-ib,b"), (Hosts{"a1-ib", "a2-ib", "b"}));
}

TEST(Nodelist, RefusesWhatSlurmNeverWrites) {
  for (const char* broken :
       {"gpu[1-", "gpu1]", "gpu[3-1]", "gpu[a]", "", "a,,b", "gpu[1-2-3]", "gpu[[1]]", "n[0-999999]"}) {
    EXPECT_THROW(expand_nodelist(broken), UsageError) << broken;
  }
}

}  // namespace
}  // namespace tessera
