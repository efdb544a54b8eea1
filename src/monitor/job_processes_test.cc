#include "monitor/job_processes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/error.h"
#include "core/host.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMiB = 1 << 20;

// A /proc of the test's own.
class FakeProc : public testing::Test {
 protected:
  FakeProc() { fs::create_directories(proc_ / "sys"); }  // no process

  struct Facts {
    int parent = 1;
    int start = 100;
    int cpu_ticks = 0;  // half of them the kernel's
    int resident_MiB = 1, virtual_MiB = 10;
    std::string name = "python";
    std::string environ_text{};
  };
  void put(int pid, const Facts& facts) const {
    const fs::path folder = proc_ / std::to_string(pid);
    fs::create_directories(folder);
    std::ofstream(folder / "stat") << fmt::format(
        "{} ({}) S {} 9 9 0 -1 4194304 5 6 7 8 {} {} 33 44 20 0 3 0 {} {} {} 18446744073709551615 1 2 3\n", pid,
        facts.name, facts.parent, facts.cpu_ticks / 2, facts.cpu_ticks - facts.cpu_ticks / 2, facts.start,
        facts.virtual_MiB * kMiB, facts.resident_MiB * kMiB / sysconf(_SC_PAGESIZE));
    std::ofstream(folder / "environ") << facts.environ_text;
  }
  void end(int pid) const { fs::remove_all(proc_ / std::to_string(pid)); }
  JobProcesses job(std::vector<pid_t> roots, const std::string& mark = "", pid_t left_out = 0) const {
    return JobProcesses({std::move(roots), left_out, mark}, proc_.path());
  }

  const TestFolder proc_;
};

using JobProcessTree = FakeProc;

TEST_F(JobProcessTree, ATreeAreARootAndItsDescendants) {
  put(10, {.parent = 1, .resident_MiB = 1, .virtual_MiB = 100});
  put(11, {.parent = 10, .resident_MiB = 2, .virtual_MiB = 200});
  put(12, {.parent = 11, .resident_MiB = 4, .virtual_MiB = 400, .name = "a) S 1 (b"});
  put(20, {.parent = 1, .resident_MiB = 8});
  const JobUsage usage = job({10}).read();
  EXPECT_EQ(usage.num_processes, 3);
  EXPECT_EQ(usage.resident_bytes, 7 * kMiB);
  EXPECT_EQ(usage.virtual_bytes, 700 * kMiB);
  EXPECT_EQ(job({10}, "", 10).read().resident_bytes, 6 * kMiB) << "without the root itself";
  EXPECT_EQ(job({99}).read().num_processes, 0);
}

// srun's ranks descend from Slurm's daemon.
TEST_F(JobProcessTree, MarkedProcessesAndTheirDescendantsBelongToTheJob) {
  const std::string variables("A=1\0SLURM_JOB_ID=77\0B=2\0", 25);
  put(5, {.name = "slurmstepd", .environ_text = "A=1"});
  put(6, {.parent = 5, .resident_MiB = 2, .environ_text = variables});
  put(7, {.parent = 6, .resident_MiB = 4});  // a child that cleared its environment
  put(8, {.parent = 5, .resident_MiB = 8, .environ_text = std::string("SLURM_JOB_ID=777\0", 17)});
  put(9, {.parent = 5, .resident_MiB = 16, .environ_text = std::string("XSLURM_JOB_ID=77\0", 17)});
  const JobUsage usage = job({}, "SLURM_JOB_ID=77").read();
  EXPECT_EQ(usage.num_processes, 2);
  EXPECT_EQ(usage.resident_bytes, 6 * kMiB);
}

// Between fork and exec a process has its parent's environment.
TEST_F(JobProcessTree, AMarkThatComesWithTheProgramIsSeen) {
  put(6, {.environ_text = "A=1"});
  JobProcesses job = this->job({}, "M=1");
  EXPECT_EQ(job.read().num_processes, 0);
  put(6, {.environ_text = "M=1"});
  EXPECT_EQ(job.read().num_processes, 1);
  put(6, {.environ_text = ""});  // not read again
  EXPECT_EQ(job.read().num_processes, 1);
  put(6, {.start = 200, .environ_text = "A=1"});  // another process with that number
  EXPECT_EQ(job.read().num_processes, 0);
}

TEST_F(JobProcessTree, CpuTimeCountsFromTheFirstReadingAndNeverFalls) {
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  put(10, {.cpu_ticks = 500});
  put(11, {.parent = 10, .start = 110, .cpu_ticks = 1000});
  JobProcesses job = this->job({10});
  EXPECT_EQ(job.read().cpu_seconds, 0);
  put(10, {.cpu_ticks = 510});
  put(11, {.parent = 10, .start = 110, .cpu_ticks = 1100});
  EXPECT_DOUBLE_EQ(job.read().cpu_seconds, 110 * tick);
  end(11);  // its 1100 ticks go with it
  EXPECT_DOUBLE_EQ(job.read().cpu_seconds, 110 * tick);
  put(11, {.parent = 10, .start = 300, .cpu_ticks = 7});  // a new one with the old number
  EXPECT_DOUBLE_EQ(job.read().cpu_seconds, 117 * tick);
}

TEST_F(JobProcessTree, BrokenAndVanishedEntriesAreSkipped) {
  put(10, {});
  fs::create_directories(proc_ / "11");  // ended between the listing and the reading
  fs::create_directories(proc_ / "12");
  std::ofstream(proc_ / "12/stat") << "12 (cut";
  EXPECT_EQ(job({10, 11, 12}, "A=1").read().num_processes, 1);
  EXPECT_EQ(JobProcesses({{1}, 0, ""}, "/no/such/folder").read().num_processes, 0);
}

TEST(JobProcesses, FindsARealChild) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  JobProcesses job({{getpid()}, 0, ""});
  const JobUsage with_child = job.read();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const JobUsage alone = job.read();
  EXPECT_EQ(with_child.num_processes, alone.num_processes + 1);
  EXPECT_GT(with_child.resident_bytes, alone.resident_bytes);
  EXPECT_GE(alone.cpu_seconds, with_child.cpu_seconds);
}

TEST(JobMark, IsTheFirstThatThereIs) {
  EXPECT_EQ(job_mark(Environment()), "");
  EXPECT_EQ(job_mark(Environment({{"TORCHELASTIC_RUN_ID", "none"}})), "");
  EXPECT_EQ(job_mark(Environment({{"TORCHELASTIC_RUN_ID", "x"}, {"TESSERA_LAUNCHED", "1"}})), "TORCHELASTIC_RUN_ID=x");
  EXPECT_EQ(job_mark(Environment({{"PMIX_NAMESPACE", "12"}, {"OMPI_MCA_ess_base_jobid", "12"}})), "PMIX_NAMESPACE=12");
  EXPECT_EQ(job_mark(Environment({{"PMIX_NAMESPACE", "12"}, {"SLURM_JOB_ID", "7"}})), "SLURM_JOB_ID=7");
}

TEST(JobEnd, IsReadFromSlurmsWords) {
  EXPECT_EQ(slurm_time_left("1-02:03:04"), 86400.0 + 2 * 3600 + 3 * 60 + 4);
  EXPECT_EQ(slurm_time_left("10:00:00"), 36000.0);
  EXPECT_EQ(slurm_time_left("2:03"), 123.0);
  EXPECT_EQ(slurm_time_left("0:00"), 0.0);
  EXPECT_FALSE(slurm_time_left("UNLIMITED"));
  for (const char* other : {"", "INVALID", "5", "1:2:3:4", "1-2-3:00", "x:00", "-1:00"}) {
    EXPECT_THROW(slurm_time_left(other), Error) << other;
  }
}

TEST(JobEnd, IsKnownOnlyWithinAJob) {
  EXPECT_FALSE(job_time_left(Environment()));
  const auto end = static_cast<long>(wall_seconds()) + 1000;
  EXPECT_NEAR(*job_time_left(Environment({{"SLURM_JOB_END_TIME", std::to_string(end)}})), 1000, 5);
}

}  // namespace

}  // namespace tessera
