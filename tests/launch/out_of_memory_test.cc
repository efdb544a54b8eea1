// A rank that the kernel kills when it is out of memory, in a control group made for it (root only).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "run.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLimit = "536870912";

// A group with a memory limit, of whichever version this host has; no value if none can be created.
class MemoryGroup {
 public:
  MemoryGroup() {
    const bool is_v2 = fs::exists("/sys/fs/cgroup/cgroup.controllers");
    const fs::path mount = is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    folder_ = mount / ("tessera-test-" + std::to_string(getpid()));
    std::error_code error;
    if (!fs::exists(mount) || !fs::create_directory(folder_, error)) return;
    std::ofstream limit(folder_ / (is_v2 ? "memory.max" : "memory.limit_in_bytes"));
    is_usable_ =
        fs::exists(folder_ / (is_v2 ? "memory.max" : "memory.limit_in_bytes")) && (limit << kLimit).flush().good();
  }
  ~MemoryGroup() {
    for (int i = 0; i < 50 && rmdir(folder_.c_str()) != 0; ++i) usleep(20'000);
  }

  bool is_usable() const { return is_usable_; }
  std::string procs_file() const { return (folder_ / "cgroup.procs").string(); }

 private:
  fs::path folder_;
  bool is_usable_ = false;
};

TEST(LaunchOutOfMemory, IsNamedAsSuch) {
  const MemoryGroup group;
  if (!group.is_usable()) GTEST_SKIP() << "no control group with a memory limit can be made here";
  // `tail` keeps all of a file that never ends and has no newline.
  Words flags = {"--starter", "fork", "--nproc_per_node", "2"};
  LaunchRun run(shell(flags, "[ $RANK = 1 ] || exec sleep 60; exec tail /dev/zero"), {},
                {"sh", "-c", "echo $$ > " + group.procs_file() + " && exec \"$@\"", "in-group"});
  EXPECT_EQ(run.wait(std::chrono::seconds(60)), 137) << run.err();
  EXPECT_TRUE(contains(run.err(), "rank 1 on host ")) << run.err();
  EXPECT_TRUE(
      contains(run.err(), "killed by SIGKILL; the kernel's out-of-memory killer killed it (memory limit 512 MiB"))
      << run.err();
}

}  // namespace
}  // namespace tessera::testing
