#include "experiment/import/sbatch_lines.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

Allocation allocation_of(const std::string& lines, std::vector<Remark>* told = nullptr) {
  Allocation allocation;
  Remarks remarks;
  read_allocation(read_sbatch_lines(lines, "s", remarks), allocation, remarks);
  if (told != nullptr) *told = remarks.all;
  return allocation;
}

TEST(SlurmTime, TakesAllFormsOfSlurm) {
  EXPECT_EQ(slurm_time("30"), "00:30:00");
  EXPECT_EQ(slurm_time("90"), "01:30:00");
  EXPECT_EQ(slurm_time("30:15"), "00:30:15");
  EXPECT_EQ(slurm_time("1:30:15"), "01:30:15");
  EXPECT_EQ(slurm_time("2-0"), "2-00:00:00");
  EXPECT_EQ(slurm_time("0-12"), "12:00:00");
  EXPECT_EQ(slurm_time("1-2:30"), "1-02:30:00");
  EXPECT_EQ(slurm_time("1-02:30:05"), "1-02:30:05");
  EXPECT_EQ(slurm_time("36:00:00"), "1-12:00:00");
  for (const char* text : {"", "soon", "1:2:3:4", "-5", "1-", "1d"}) EXPECT_EQ(slurm_time(text), std::nullopt) << text;
}

TEST(SlurmMemory, CountsInMegabytes) {
  EXPECT_EQ(slurm_megabytes("64G"), 65536);
  EXPECT_EQ(slurm_megabytes("64000"), 64000);
  EXPECT_EQ(slurm_megabytes("1t"), 1048576);
  EXPECT_EQ(slurm_megabytes("2048K"), 2);
  EXPECT_EQ(slurm_megabytes("lots"), std::nullopt);
  EXPECT_EQ(megabytes_text(65536), "64G");
  EXPECT_EQ(megabytes_text(64000), "64000M");
  EXPECT_EQ(megabytes_text(0), "0");
}

TEST(SlurmGpus, TakesNumbersWithAndWithoutTypes) {
  EXPECT_EQ(slurm_gpus("4"), 4);
  EXPECT_EQ(slurm_gpus("a100:4"), 4);
  EXPECT_EQ(slurm_gpus("a100:2,v100:1"), 3);
  EXPECT_EQ(slurm_gres_gpus("gpu:a100:4"), 4);
  EXPECT_EQ(slurm_gres_gpus("gpu:2,nvme:1"), 2);
  EXPECT_EQ(slurm_gres_gpus("gpu"), 1);
  EXPECT_EQ(slurm_gres_gpus("gpu:v100"), 1);
  EXPECT_EQ(slurm_gres_gpus("nvme:1"), std::nullopt);
}

TEST(SbatchLines, ShortAndLongFormsSayTheSame) {
  for (const char* lines :
       {"#SBATCH -N 2 -n4 -c 8 -t 30 -J x\n",
        "#SBATCH --nodes=2 --ntasks 4\n#SBATCH --cpus-per-task=8  # each\n#SBATCH --time=30\n#SBATCH --job-name=x\n"}) {
    const Allocation allocation = allocation_of(lines);
    EXPECT_EQ(allocation.nodes, 2);
    EXPECT_EQ(allocation.num_tasks_per_node(), 2);
    EXPECT_EQ(allocation.cpus_per_task, 8);
    EXPECT_EQ(allocation.time, "00:30:00");
    EXPECT_EQ(allocation.job_name, "x");
  }
}

TEST(SbatchLines, GpusOfTheJobOfANodeAndOfATaskGiveGpusPerNode) {
  EXPECT_EQ(allocation_of("#SBATCH -N 2 --gpus=8\n").num_gpus_per_node(), 4);
  EXPECT_EQ(allocation_of("#SBATCH -N 2 --gpus-per-node=a100:4\n").num_gpus_per_node(), 4);
  EXPECT_EQ(allocation_of("#SBATCH -N 2 --ntasks-per-node=4 --gpus-per-task=1\n").num_gpus_per_node(), 4);
  EXPECT_EQ(allocation_of("#SBATCH -N 2 --gres=gpu:4\n").num_gpus_per_node(), 4);
  EXPECT_EQ(allocation_of("#SBATCH -N 2\n").num_gpus_per_node(), std::nullopt);
}

TEST(SbatchLines, FactsOfTheClusterBelongToTheSiteFile) {
  std::vector<Remark> told;
  allocation_of("#SBATCH -p gpu -A me --constraint=a100&8gpus --reservation=r --qos=q\n", &told);
  ASSERT_EQ(told.size(), 5U);
  for (const Remark& remark : told) EXPECT_EQ(remark.kind, Remark::Kind::kSite) << remark.what;
  EXPECT_EQ(told[2].what, "--constraint=a100&8gpus");
}

TEST(SbatchLines, LinesBehindTheFirstCommandAndDisabledOnesDoNotCount) {
  Remarks remarks;
  const auto options =
      read_sbatch_lines("#!/bin/bash\n##SBATCH -N 8\n#SBATCH -N 1\necho\n#SBATCH -N 4\n", "s", remarks);
  ASSERT_EQ(options.size(), 1U);
  EXPECT_EQ(options[0].value, "1");
  ASSERT_EQ(remarks.all.size(), 1U);
  EXPECT_EQ(remarks.all[0].place, "s:5");
}

TEST(SbatchLines, RefusesValuesThatSlurmWouldRefuse) {
  EXPECT_THROW(allocation_of("#SBATCH --nodes=many\n"), UsageError);
  EXPECT_THROW(allocation_of("#SBATCH --time=soon\n"), UsageError);
  EXPECT_THROW(allocation_of("#SBATCH nodes=2\n"), UsageError);
}

}  // namespace
}  // namespace tessera
