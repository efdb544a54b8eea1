#include "launch/oom.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A root folder with only the kernel files that matter here.
class OomTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }

  const TestFolder root_;
};

TEST_F(OomTest, NamesTheLimitOfTheGroupInCgroup2) {
  write("proc/self/cgroup", "0::/slice/job_7/step_0\n");
  write("sys/fs/cgroup/slice/job_7/memory.max", "2147483648\n");
  write("sys/fs/cgroup/slice/job_7/step_0/memory.max", "max\n");
  write("sys/fs/cgroup/slice/job_7/step_0/memory.events", "low 0\noom 4\noom_kill 4\n");
  const OomWatch watch(root_.path());
  EXPECT_EQ(watch.verdict(), "");
  write("sys/fs/cgroup/slice/job_7/step_0/memory.events", "low 0\noom 5\noom_kill 5\n");
  EXPECT_EQ(watch.verdict(), "the kernel's out-of-memory killer killed it (memory limit 2 GiB of cgroup /slice/job_7)");
}

TEST_F(OomTest, ReadsCgroup1) {
  write("proc/self/cgroup", "4:memory:/job\n3:cpuset:/\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "104857600\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  const OomWatch watch(root_.path());
  write("sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  EXPECT_EQ(watch.verdict(), "the kernel's out-of-memory killer killed it (memory limit 100 MiB of cgroup /job)");
}

TEST_F(OomTest, TakesTheMountWhereTheGroupIsTheHosts) {
  write("proc/self/cgroup", "0::/docker/abc\n");
  write("sys/fs/cgroup/memory.events", "oom_kill 0\n");
  const OomWatch watch(root_.path());
  write("sys/fs/cgroup/memory.events", "oom_kill 1\n");
  EXPECT_EQ(watch.verdict(), "the kernel's out-of-memory killer killed it");
}

TEST_F(OomTest, FallsBackToTheHostsCount) {
  write("proc/vmstat", "nr_free_pages 5\noom_kill 2\n");
  const OomWatch watch(root_.path());
  write("proc/vmstat", "nr_free_pages 5\noom_kill 3\n");
  EXPECT_NE(watch.verdict().find("whole host"), std::string::npos);
}

TEST_F(OomTest, SaysNothingWithoutAnyCounter) {
  EXPECT_EQ(OomWatch(root_.path()).verdict(), "");
}

}  // namespace
}  // namespace tessera
