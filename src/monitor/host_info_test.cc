#include "monitor/host_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/host.h"
#include "support/test_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// A folder that replaces / and holds only what the test puts there.
class FakeRoot : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const TestFolder root_;
};

using HostInfoFiles = FakeRoot;

TEST_F(HostInfoFiles, AnEmptySystemIsUnknownAndNoFailure) {
  const HostInfo host = read_host_info(root_.path());
  EXPECT_EQ(host.os_name, std::nullopt);
  EXPECT_EQ(host.cpu.model, std::nullopt);
  EXPECT_EQ(host.cpu.num_processors, 0);
  EXPECT_EQ(host.memory.total_bytes, std::nullopt);
  EXPECT_EQ(host.memory.usable_bytes(), std::nullopt);
  EXPECT_EQ(host.memory.shm_total_bytes, std::nullopt);
  EXPECT_EQ(host.num_nvidia_devices, 0);
}

TEST_F(HostInfoFiles, FoldersAndBytesInPlaceOfFilesAreNoFailure) {
  fs::create_directories(root_ / "proc/meminfo");
  fs::create_directories(root_ / "etc/os-release");
  put("proc/self/cgroup", std::string("\0\xff:\n::::\n0::", 12));
  put("proc/cpuinfo", std::string(1000, '\xff'));
  EXPECT_EQ(read_host_info(root_.path()).memory.total_bytes, std::nullopt);
}

TEST_F(HostInfoFiles, TheLowestLimitOfCgroupVersion2Holds) {
  put("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3145728 kB\n");
  put("proc/self/cgroup", "0::/job/step\n");
  put("sys/fs/cgroup/job/step/memory.max", "max\n");
  put("sys/fs/cgroup/job/memory.max", "1073741824\n");
  put("sys/fs/cgroup/job/memory.current", "536870912\n");
  put("sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 268435456\n");
  put("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  const MemoryInfo memory = read_memory_info(root_.path());
  EXPECT_EQ(memory.total_bytes, std::int64_t{4} << 30);
  EXPECT_EQ(memory.cgroup_limit_bytes, 1 << 30);
  EXPECT_EQ(memory.cgroup_available_bytes, 3 << 28);  // file cache counts as free
  EXPECT_EQ(memory.usable_bytes(), 3 << 28);
  EXPECT_EQ(read_cpu_info(root_.path()).quota, 1.5);
}

TEST_F(HostInfoFiles, TheLimitOfCgroupVersion1Holds) {
  put("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 3145728 kB\n");
  put("proc/self/cgroup", "4:memory:/docker/1234\n1:cpu,cpuacct:/docker/1234\n0::/\n");
  // In a container the folder of the host's path is not there, but the root is the container's own.
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "2147483649\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const MemoryInfo memory = read_memory_info(root_.path());
  EXPECT_EQ(memory.cgroup_limit_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(memory.usable_bytes(), 0);
  EXPECT_EQ(read_cpu_info(root_.path()).quota, 2);
}

TEST_F(HostInfoFiles, NvidiaDevicesAreSeenWithoutADriver) {
  put("sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  put("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
  put("sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");  // its sound device
  put("sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
  put("sys/bus/pci/devices/0000:02:00.0/vendor", "0x8086\n");
  put("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n");
  EXPECT_EQ(read_host_info(root_.path()).num_nvidia_devices, 1);
}

TEST(HostInfo, ThisHostHasMemoryAndALoopback) {
  const HostInfo host = read_host_info();
  ASSERT_TRUE(host.memory.usable_bytes().has_value());
  EXPECT_GT(*host.memory.usable_bytes(), 0);
  EXPECT_LE(*host.memory.available_bytes, *host.memory.total_bytes);
  EXPECT_GE(host.cpu.num_processors, 1);
  EXPECT_TRUE(host.kernel.has_value());
  EXPECT_TRUE(std::any_of(host.interfaces.begin(), host.interfaces.end(),
                          [](const NetworkInterface& each) { return each.is_loopback && each.name == "lo"; }));
}

TEST_F(HostInfoFiles, CgroupVersion2IsCountedWithoutPageCache) {
  EXPECT_EQ(read_cgroup_used_bytes("", root_.path()), std::nullopt);
  put("proc/self/cgroup", "0::/system.slice/job_77/step_0/task_3\n");
  put("sys/fs/cgroup/system.slice/job_77/step_0/task_3/memory.current", "1000\n");
  put("sys/fs/cgroup/system.slice/job_77/step_0/task_3/memory.stat",
      "anon 5\nfile 800\nshmem 100\ninactive_file 300\nactive_file 400\n");
  put("sys/fs/cgroup/system.slice/job_77/memory.current", "5000\n");
  put("sys/fs/cgroup/system.slice/job_77/memory.stat", "inactive_file 1000\nactive_file 500\n");
  EXPECT_EQ(read_cgroup_used_bytes("", root_.path()), 300);     // shared memory is no cache
  EXPECT_EQ(read_cgroup_used_bytes("77", root_.path()), 3500);  // all tasks of the Slurm job
  EXPECT_EQ(read_cgroup_used_bytes("7", root_.path()), 300);
}

TEST_F(HostInfoFiles, CgroupVersion1IsCountedWithItsChildren) {
  put("proc/self/cgroup", "4:memory:/a/b\n0::/\n");
  put("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "9000\n");
  put("sys/fs/cgroup/memory/a/b/memory.stat",
      "inactive_file 1\nactive_file 2\ntotal_inactive_file 1000\ntotal_active_file 3000\n");
  EXPECT_EQ(read_cgroup_used_bytes("", root_.path()), 5000);
}

using Names = std::vector<std::string>;

TEST(OsRelease, GivesThePrettyName) {
  EXPECT_EQ(parse_os_name("NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(parse_os_name("NAME=Arch\nPRETTY_NAME=\n"), "Arch");
  EXPECT_EQ(parse_os_name("PRETTY_NAME='A B'"), "A B");
  EXPECT_EQ(parse_os_name(""), std::nullopt);
  EXPECT_EQ(parse_os_name("\xff\xfe=\n==\n\""), std::nullopt);
}

TEST(CpuInfoText, NamesTheModelAndCountsProcessors) {
  const CpuInfo intel = parse_cpuinfo(
      "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6148\n\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R)\n");
  EXPECT_EQ(intel.model, "Intel(R) Xeon(R) Gold 6148");
  EXPECT_EQ(intel.num_processors, 2);
  const CpuInfo arm = parse_cpuinfo("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  EXPECT_EQ(arm.model, "ARM Neoverse-V1");
  EXPECT_EQ(parse_cpuinfo("CPU implementer: 0x99\nCPU part: 0x001\n").model, "ARM, implementer 0x99, part 0x001");
  EXPECT_EQ(parse_cpuinfo("nonsense").model, std::nullopt);
  EXPECT_EQ(parse_cpuinfo("").num_processors, 0);
}

TEST(Meminfo, IsInBytes) {
  const std::string text = "MemTotal:       24576000 kB\nMemFree: 1 kB\nMemAvailable:   22016520 kB\n";
  EXPECT_EQ(parse_meminfo(text, "MemTotal"), std::int64_t{24576000} * 1024);
  EXPECT_EQ(parse_meminfo(text, "MemAvailable"), std::int64_t{22016520} * 1024);
  EXPECT_EQ(parse_meminfo(text, "Mem"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal: many kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal: 9223372036854775807 kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(parse_meminfo("MemTotal:", "MemTotal"), std::nullopt);
}

TEST(CgroupText, LimitsAreNumbersOrNone) {
  EXPECT_EQ(parse_cgroup_limit("1073741824\n"), 1 << 30);
  EXPECT_EQ(parse_cgroup_limit("max\n"), std::nullopt);
  EXPECT_EQ(parse_cgroup_limit("9223372036854771712\n"), std::nullopt);  // version 1's word for none
  EXPECT_EQ(parse_cgroup_limit(""), std::nullopt);
  EXPECT_EQ(parse_cgroup_limit("-1"), std::nullopt);
}

TEST(CgroupText, QuotasAreCores) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_EQ(parse_cpu_max("max 100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_max(""), std::nullopt);
  EXPECT_EQ(parse_cpu_max("100000"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota("200000\n", "100000\n"), 2);
  EXPECT_EQ(parse_cpu_quota("-1\n", "100000\n"), std::nullopt);
  EXPECT_EQ(parse_cpu_quota("1", "0"), std::nullopt);
}

TEST(CgroupText, FindsTheFolderOfEitherVersion) {
  const std::string text = "4:memory,hugetlb:/jobs/a:b\n1:cpu:/\n0::/user.slice\n";
  EXPECT_EQ(parse_cgroup_path(text, "memory"), "/jobs/a:b");
  EXPECT_EQ(parse_cgroup_path(text, "cpu"), "/");
  EXPECT_EQ(parse_cgroup_path(text, ""), "/user.slice");
  EXPECT_EQ(parse_cgroup_path(text, "pids"), std::nullopt);
  EXPECT_EQ(parse_cgroup_path("garbage\n:\n", ""), std::nullopt);
}

TEST(StatText, GivesTheNamedLine) {
  EXPECT_EQ(named_number("active_file 1\ninactive_file 4096\n", "inactive_file"), 4096);
  EXPECT_EQ(named_number("inactive_file\n", "inactive_file"), std::nullopt);
}

TEST(SelectNames, ReadsPrefixesExactNamesAndExclusionsAsNcclDoes) {
  const Names here = {"lo", "eth0", "eth1", "ib0"};
  EXPECT_EQ(select_names("eth", here), (Names{"eth0", "eth1"}));
  EXPECT_EQ(select_names("ib0,eth1", here), (Names{"eth1", "ib0"}));
  EXPECT_EQ(select_names("=eth", here), Names{});
  EXPECT_EQ(select_names("=eth0,ib0", here), (Names{"eth0", "ib0"}));
  EXPECT_EQ(select_names("^lo,eth", here), Names{"ib0"});
  EXPECT_EQ(select_names("^=eth0", here), (Names{"lo", "eth1", "ib0"}));
  EXPECT_EQ(select_names("ib1", here), Names{});
  EXPECT_EQ(select_names("", here), Names{});
  EXPECT_EQ(select_names("mlx5_0:1", {"mlx5_0", "mlx5_1"}), Names{"mlx5_0"});
}

}  // namespace
}  // namespace tessera
