// Slurm's answers as recorded from real ones: squeue and scontrol of 22.05 without accounting, sacct of 23.11.
#include "experiment/queue.h"

#include <gtest/gtest.h>

#include "experiment/site.h"

namespace tessera {
namespace {

TEST(Queue, ReadsSqueue) {
  const Jobs jobs = parse_squeue("12|RUNNING|None|node[1-2]\n13|PENDING|Dependency|\n14|PENDING|Priority|\n");
  ASSERT_EQ(jobs.size(), 3U);
  EXPECT_EQ(jobs.at("12").state, "RUNNING");
  EXPECT_EQ(jobs.at("12").reason, "node[1-2]");
  EXPECT_EQ(jobs.at("13").reason, "Dependency");
}

TEST(Queue, ReadsScontrolOfEndedJobs) {
  const Jobs jobs = parse_scontrol(
      "JobId=205 JobName=ddp_2G2N UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901556 Nice=0 "
      "Account=(null) "
      "QOS=(null) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 "
      "ExitCode=46:0 RunTime=00:00:07 TimeLimit=00:15:00 TimeMin=N/A Partition=main NodeList=node[1-2] "
      "BatchHost=node1\n"
      "JobId=3 JobName=x JobState=CANCELLED Reason=None ExitCode=0:15 NodeList=(null)\n"
      "No jobs in the system\n");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs.at("205").state, "FAILED");
  EXPECT_EQ(jobs.at("205").exit_status, 46);
  EXPECT_EQ(jobs.at("205").reason, "node[1-2]");
  EXPECT_EQ(jobs.at("3").exit_status, 128 + 15);
  EXPECT_EQ(jobs.at("3").reason, "None");
}

TEST(Queue, ReadsSacct) {
  const Jobs jobs = parse_sacct(
      "205|COMPLETED|0:0|a100-[01-02]\n206|TIMEOUT|0:0|a100-03\n207|CANCELLED by 1000|0:0|None assigned\n"
      "208|OUT_OF_MEMORY|0:125|a100-04\n209|NODE_FAIL|1:0|a100-05\n");
  EXPECT_EQ(jobs.at("205").exit_status, 0);
  EXPECT_EQ(jobs.at("206").state, "TIMEOUT");
  EXPECT_EQ(jobs.at("207").state, "CANCELLED");
  EXPECT_EQ(jobs.at("208").state, "OUT_OF_MEMORY");
  EXPECT_EQ(jobs.at("209").reason, "a100-05");
}

TEST(Queue, KnowsWhichStatesAreTheEnd) {
  for (const char* state : {"PENDING", "RUNNING", "COMPLETING", "REQUEUED"}) EXPECT_FALSE(is_over(state)) << state;
  for (const char* state : {"COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED"}) EXPECT_TRUE(is_over(state));
}

TEST(SiteDiscovery, ChoosesAPartitionWithGpus) {
  const auto partitions = parse_sinfo(
      "cpu*|(null)|icelake|64|100\na100|gpu:a100:4(S:0-1)|a100,4gpus|32|20\n"
      "big|gpu:a100:8,lustre:1|a100,8gpus|64+|4\n");
  ASSERT_EQ(partitions.size(), 3U);
  EXPECT_TRUE(partitions[0].is_default);
  EXPECT_EQ(partitions[1].gpus_per_node, 4);
  EXPECT_EQ(partitions[2].gpus_per_node, 8);
  EXPECT_EQ(choose_partition(partitions)->name, "a100");
  EXPECT_EQ(choose_partition({}), nullptr);
}

}  // namespace
}  // namespace tessera
