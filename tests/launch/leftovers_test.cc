// What killed runs leave on the host is gone after the next start; what living ones use stays.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include "run.h"
#include "support/test_folder.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// MPI ranks that run until they are ended.
const Words kEndless = {
    "--starter", "mpirun", "--nproc_per_node", "2", "comm-test", "all_reduce", "--device", "cpu", "-b", "4K", "-e",
    "4K",        "-n",     "1000000"};

// What MPI's ranks of the run share.
std::set<fs::path> shared_memory_of(const LaunchRun& run) {
  std::set<fs::path> found;
  for (const pid_t process : run.processes()) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      const auto path = line.find("/dev/shm/vader_segment.");
      if (path != std::string::npos) found.insert(line.substr(path));
    }
  }
  return found;
}

std::set<fs::path> wait_for_shared_memory(const LaunchRun& run) {
  std::set<fs::path> found;
  for (int round = 0; round < 1000 && found.size() < 2; ++round) {
    std::this_thread::sleep_for(20ms);
    found = shared_memory_of(run);
  }
  EXPECT_EQ(found.size(), 2u) << run.err();
  return found;
}

// Launchers' folders and mpirun's sessions.
std::set<fs::path> left_in(const fs::path& folder) {
  std::set<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("tessera-launch-")) found.insert(entry.path());
    if (!name.starts_with("ompi.")) continue;
    for (const auto& session : fs::directory_iterator(entry)) found.insert(session.path());
  }
  return found;
}

void make_old(const std::set<fs::path>& paths) {
  for (const fs::path& path : paths) fs::last_write_time(path, fs::file_time_type::clock::now() - 1h);
}

bool exists_all(const std::set<fs::path>& paths) {
  return std::all_of(paths.begin(), paths.end(), [](const fs::path& path) { return fs::exists(path); });
}

class LaunchLeftovers : public ::testing::Test {
 protected:
  Variables in_folder() const { return {{"TMPDIR", folder_.path().string()}}; }
  void launch_something() const {
    LaunchRun run(shell({"--starter", "fork", "--nproc_per_node", "1"}, "exit 0"), in_folder());
    EXPECT_EQ(run.wait(), 0) << run.err();
  }

  const TestFolder folder_;
};

TEST_F(LaunchLeftovers, OfDeadRunsAreRemovedAndThoseOfLivingOnesStay) {
  if (!has_mpirun()) GTEST_SKIP() << "no mpirun";
  LaunchRun living(kEndless, in_folder());
  const std::set<fs::path> used_memory = wait_for_shared_memory(living), used = left_in(folder_.path());
  ASSERT_EQ(used.size(), 2u);  // its folder and its session
  std::set<fs::path> left_memory, left;
  {
    LaunchRun dead(kEndless, in_folder());
    left_memory = wait_for_shared_memory(dead);
    // All at once, as when a node loses power: the minders and mpirun would clean up.
    for (const pid_t process : dead.processes()) kill(process, SIGSTOP);
    for (const pid_t process : dead.processes()) kill(process, SIGKILL);
    EXPECT_EQ(dead.wait(), 137);
    EXPECT_TRUE(dead.is_gone(kSoon));
  }
  for (const fs::path& path : left_in(folder_.path())) {
    if (!used.contains(path)) left.insert(path);
  }
  ASSERT_EQ(left.size(), 2u);
  ASSERT_TRUE(exists_all(left_memory));
  for (const auto& paths : {used, used_memory, left, left_memory}) make_old(paths);

  launch_something();
  for (const fs::path& path : left) EXPECT_FALSE(fs::exists(path)) << path;
  for (const fs::path& path : left_memory) EXPECT_FALSE(fs::exists(path)) << path;
  EXPECT_TRUE(exists_all(used));
  EXPECT_TRUE(exists_all(used_memory));
  living.signal(SIGTERM);
  EXPECT_EQ(living.wait(), 143) << living.err();
  EXPECT_TRUE(left_in(folder_.path()).empty());
}

// A session that has just been made may belong to an mpirun in another stage of its start.
TEST_F(LaunchLeftovers, WhatIsYoungStays) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const fs::path sessions = folder_ / ("ompi." + std::string(host) + "." + std::to_string(geteuid()));
  const fs::path young = sessions / "pid.999999998", old = sessions / "pid.999999999", other = sessions / "jf.1";
  for (const fs::path& path : {young, old, other}) fs::create_directories(path);
  make_old({old, other});
  const fs::path foreign = folder_ / "tessera-launch-abcdef";  // of another version: it has no lock
  fs::create_directories(foreign);
  make_old({foreign});
  launch_something();
  EXPECT_TRUE(fs::exists(young));
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_FALSE(fs::exists(old));
}

}  // namespace
}  // namespace tessera::testing
